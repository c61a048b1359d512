// Two pens with the same strokes: one paints a canvas, one writes an SVG element.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** Styles have `stroke`, `width`, `dash`, `cap`, `fill` and `closed`. */
class CanvasPen {
  constructor(canvas, width, height, sharp) {
    [this.canvas, this.width, this.height, this.sharp] = [canvas, width, height, sharp];
    this.paper = canvas.getContext('2d');
    this.paper.setTransform(sharp, 0, 0, sharp, 0, 0);
  }

  clear() {
    this.paper.clearRect(0, 0, this.width, this.height);
  }

  finish({ stroke, width = 1, dash = [], fill, cap = 'round' }) {
    const { paper } = this;
    if (fill) {
      paper.fillStyle = fill;
      paper.fill();
    }
    if (stroke) {
      paper.strokeStyle = stroke;
      paper.lineWidth = width;
      paper.lineJoin = 'round';
      paper.lineCap = dash.length > 0 ? 'butt' : cap;
      paper.setLineDash(dash);
      paper.stroke();
    }
  }

  /** Polylines; with `closed`, polygons. */
  lines(all, style) {
    this.paper.beginPath();
    for (const points of all) {
      points.forEach(([x, y], i) => (i === 0 ? this.paper.moveTo(x, y) : this.paper.lineTo(x, y)));
      if (style.closed) this.paper.closePath();
    }
    this.finish(style);
  }

  circle(x, y, radius, style) {
    this.paper.beginPath();
    this.paper.arc(x, y, radius, 0, 2 * Math.PI);
    this.finish(style);
  }

  box(x, y, width, height, radius, style) {
    this.paper.beginPath();
    this.paper.roundRect(x, y, width, height, radius);
    this.finish(style);
  }

  font(size, bold) {
    return `${bold ? 'bold ' : ''}${size}px ${FONT}`;
  }

  textWidth(text, { size, bold }) {
    this.paper.font = this.font(size, bold);
    return this.paper.measureText(text).width;
  }

  /** A text around a point; `align` start, middle or end; `turn` in radians. */
  text(text, x, y, { size, fill, bold = false, align = 'middle', turn = 0 }) {
    const { paper } = this;
    paper.save();
    paper.translate(x, y);
    paper.rotate(turn);
    paper.font = this.font(size, bold);
    paper.fillStyle = fill;
    paper.textAlign = align === 'middle' ? 'center' : align;
    paper.textBaseline = 'middle';
    paper.fillText(text, 0, 0);
    paper.restore();
  }
}

class SvgPen extends CanvasPen {
  constructor(canvas, width, height, back) {
    super(canvas, width, height, 1);
    this.root = svg('svg', { xmlns: SVG, viewBox: `0 0 ${round2(width)} ${round2(height)}`, width: round2(width), height: round2(height) });
    this.root.append(svg('rect', { width: '100%', height: '100%', fill: back }));
  }

  clear() {}

  add(tag, attributes, { stroke, width = 1, dash = [], fill, cap = 'round' }, ...children) {
    this.root.append(svg(tag, {
      ...attributes,
      fill: fill ?? 'none',
      stroke,
      'stroke-width': stroke && round2(width),
      'stroke-dasharray': dash.length > 0 ? dash.join(' ') : undefined,
      'stroke-linejoin': stroke && 'round',
      'stroke-linecap': stroke && dash.length === 0 ? cap : undefined,
    }, ...children));
  }

  lines(all, style) {
    const d = all.map((points) => `M${points.map(([x, y]) => `${round2(x)},${round2(y)}`).join(' ')}${style.closed ? 'Z' : ''}`).join('');
    if (d !== '') this.add('path', { d }, style);
  }

  circle(x, y, radius, style) {
    this.add('circle', { cx: round2(x), cy: round2(y), r: round2(radius) }, style);
  }

  box(x, y, width, height, radius, style) {
    this.add('rect', { x: round2(x), y: round2(y), width: round2(width), height: round2(height), rx: round2(radius) }, style);
  }

  text(text, x, y, { size, fill, bold = false, align = 'middle', turn = 0 }) {
    const place = `translate(${round2(x)},${round2(y)}) rotate(${round2((turn * 180) / Math.PI)})`;
    this.add('text', {
      transform: place, 'font-family': FONT, 'font-size': round2(size), 'font-weight': bold ? 'bold' : undefined,
      'text-anchor': align, 'dominant-baseline': 'central',
    }, { fill }, text);
  }

  written() {
    return new XMLSerializer().serializeToString(this.root);
  }
}

function round2(value) {
  return Math.round(value * 100) / 100;
}
