// Builds the page.

const data = JSON.parse(document.getElementById('data').textContent);
// The player replaces the address.
const opened = location.hash;
const part = (id) => document.getElementById(id);

addPatterns(part('patterns'));
head(part('head'), data);
data.plays.forEach(unpack);
const schedules = data.plays.map((play) => new Schedule(play));
let player;
if (schedules.length > 0) {
  player = new Player(part('watch'), data, schedules);
  const heat = new Heat(part('heat'), schedules[data.first]);
  heat.view.element.append(heat.view.takes(() => [heat.schedule.play.machine, heat.schedule.play.algorithm, 'link heat']));
  player.onchoose = (which) => heat.show(schedules[which]);
  // Canvases use the page's current colours: light, dark or print.
  const repaint = () => {
    [...player.stages, heat].forEach((shown) => { shown.view.drawing.recolour(); shown.paint(); });
    player.stages.forEach(({ ranks }) => { if (ranks.times) ranks.draw(); });
  };
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  window.matchMedia('print').addEventListener('change', repaint);
  window.addEventListener('hashchange', () => player.reopen(location.hash));
  player.reopen(opened);
} else {
  part('heat').hidden = true;
  part('watch').append(html('h2', {}, 'Watch'), html('p', {}, 'No schedule is drawn; the notes say why.'));
}
ranking(part('ranking'), data, player);
demandHeat(part('demand'), data);
sweepChart(part('sweep'), data);
frontChart(part('front'), data);
notes(part('notes'), data);
document.documentElement.dataset.ready = 'yes';
