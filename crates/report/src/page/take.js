// Taking things along: pictures as files, tables and links as text.

/** A button that does something and says so. */
function takeButton(name, label, act) {
  const button = html('button', { type: 'button', class: 'take', 'aria-label': label, title: label }, name);
  const said = html('span', { class: 'said', role: 'status' });
  let timer;
  button.addEventListener('click', async () => {
    said.textContent = await act();
    clearTimeout(timer);
    timer = setTimeout(() => { said.textContent = ''; }, 4000);
  });
  return html('span', { class: 'taking' }, button, said);
}

/** A name of a file: letters, digits, dots and hyphens. */
function fileName(parts, ending) {
  return `${['topocoll', ...parts].join('-').toLowerCase().replace(/[^a-z0-9.]+/g, '-').replace(/^[-.]+|[-.]+$/g, '').slice(0, 100)}.${ending}`;
}

/** Saves a file. */
function save(name, blob) {
  const address = URL.createObjectURL(blob);
  html('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  return `Saved ${name}`;
}

/** Copies a text; where the browser refuses, as for some files, through a selection. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return 'Copied';
  } catch {
    const before = document.activeElement;
    const area = html('textarea', { class: 'copied', readonly: true, 'aria-label': 'Text to copy' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    if (done) {
      area.remove();
      before?.focus();
      return 'Copied';
    }
    area.classList.add('shown');
    area.addEventListener('blur', () => area.remove(), { once: true });
    return 'Press Ctrl-C to copy';
  }
}

/** A table as text: a line for each row, columns apart by tabs; without its buttons and pictures. */
function tableText(table) {
  const shown = [...table.tHead.rows[0].cells].map((cell) => !cell.classList.contains('wide') && cell.textContent !== '');
  const line = (row) => [...row.cells].filter((_, i) => shown[i]).map((cell) => cell.textContent.trim()).join('\t');
  return `${[...table.rows].map(line).join('\n')}\n`;
}

/** Properties of elements of a picture that style sheets set. */
const STYLED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-family', 'font-weight', 'font-style'];

/** An SVG element of the page as the text of a file of its own. */
function svgText(element) {
  const { width, height } = element.viewBox.baseVal;
  const copied = element.cloneNode(true);
  const sources = [element, ...element.querySelectorAll('*')];
  [copied, ...copied.querySelectorAll('*')].forEach((node, i) => {
    const style = getComputedStyle(sources[i]);
    for (const name of STYLED) node.setAttribute(name, style.getPropertyValue(name));
    ['class', 'style', 'tabindex'].forEach((name) => node.removeAttribute(name));
  });
  copied.setAttribute('width', width);
  copied.setAttribute('height', height);
  copied.prepend(svg('rect', { width, height, fill: colour('card') }));
  return new XMLSerializer().serializeToString(copied);
}

/** Buttons that save a chart of the page as SVG or PNG. */
function takeChart(picture, parts) {
  const written = () => new Blob([svgText(picture)], { type: 'image/svg+xml' });
  return takeDrawing(written, () => painted(svgText(picture)), parts);
}

/** Buttons that save an SVG blob and a PNG canvas. */
function takeDrawing(asSvg, asCanvas, parts) {
  const png = async () => {
    const canvas = await asCanvas();
    const blob = await new Promise((done) => { canvas.toBlob(done, 'image/png'); });
    return save(fileName(parts(), 'png'), blob);
  };
  return html('span', { class: 'takes' },
    asSvg ? takeButton('SVG', 'Save this picture as SVG', () => save(fileName(parts(), 'svg'), asSvg())) : undefined,
    takeButton('PNG', 'Save this picture as PNG', png));
}

/** The text of an SVG file on a canvas, twice as large. */
async function painted(text) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  return onCard(image, 2);
}

/** A picture on the background of cards, some times as large. */
function onCard(picture, times = 1) {
  const [width, height] = [times * picture.width, times * picture.height];
  const canvas = html('canvas', { width, height });
  const paper = canvas.getContext('2d');
  paper.fillStyle = colour('card');
  paper.fillRect(0, 0, width, height);
  paper.drawImage(picture, 0, 0, width, height);
  return canvas;
}
