// Builds the page.

const data = JSON.parse(document.getElementById('data').textContent);
const part = (id) => document.getElementById(id);

addPatterns(part('patterns'));
head(part('head'), data);
const schedules = data.plays.map((play) => new Schedule(play));
let player;
if (schedules.length > 0) {
  player = new Player(part('watch'), data, schedules);
  const heat = new Heat(part('heat'), schedules[data.first]);
  player.onchoose = (which) => heat.show(schedules[which]);
  // Canvases use the page's current colours: light, dark or print.
  const repaint = () => [player, heat].forEach((shown) => { shown.view.drawing.recolour(); shown.paint(); });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  window.matchMedia('print').addEventListener('change', repaint);
} else {
  part('heat').hidden = true;
  part('watch').append(html('h2', {}, 'Watch it'), html('p', {}, 'No schedule is small enough to draw; the notes say why.'));
}
ranking(part('ranking'), data, player);
sweepChart(part('sweep'), data);
frontChart(part('front'), data);
notes(part('notes'), data);
document.documentElement.dataset.ready = 'yes';
