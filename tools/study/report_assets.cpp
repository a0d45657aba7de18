#include "tools/study/report_assets.hpp"
namespace mneme {

const std::string_view report_style = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1a1a1a; --soft: #595959; --line: #cccccc; --box: #f5f5f5;
        --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --page: #161616; --ink: #ececec; --soft: #b0b0b0; --line: #444444; --box: #222222; --link: #8ab8f0; } }
:root[data-theme="light"] { color-scheme: light; --page: #ffffff; --ink: #1a1a1a; --soft: #595959; --line: #cccccc;
  --box: #f5f5f5; --link: #0b5cad; }
:root[data-theme="dark"] { color-scheme: dark; --page: #161616; --ink: #ececec; --soft: #b0b0b0; --line: #444444;
  --box: #222222; --link: #8ab8f0; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main, header { max-width: 1440px; margin: 0 auto; padding: 0 16px; }
header { display: flex; flex-wrap: wrap; gap: 0 16px; align-items: baseline; }
header p { margin: 0; flex-basis: 100%; color: var(--soft); }
h1 { font-size: 1.5rem; margin: 16px 0 4px; flex: 1; min-width: 60%; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; } h3 { font-size: 1rem; margin: 0 0 4px; }
.scroll { overflow-x: auto; margin-bottom: 16px; } table { border-collapse: collapse; font-size: 0.9rem; }
caption { text-align: left; color: var(--soft); padding: 4px 10px; white-space: nowrap; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap;
         vertical-align: top; font-variant-numeric: tabular-nums; }
td.number, th.number { text-align: right; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--box);
         min-width: 0; overflow-wrap: anywhere; }
figure > div > svg { display: block; width: 100%; height: auto; color: var(--ink); touch-action: pan-y; }
.cell { font-size: 14px; } .cell, .whisker { pointer-events: none; }
@media (max-width: 600px) { figure > div > svg { font-size: 19px; } .cell { font-size: 17px; }
                            figure { padding: 8px; } main, header { padding: 0 8px; } }
figcaption { color: var(--soft); font-size: 0.85rem; }
.names { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 0; margin: 4px 0;
         font-size: 0.85rem; }
.swatch { width: 30px; height: 12px; margin-right: 6px; vertical-align: middle; flex: none; }
.legend { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: 0 16px; border: 0;
          border-bottom: 1px solid var(--line); padding: 4px 0; margin: 0 0 12px; background: var(--page);
          max-height: 30vh; overflow-y: auto; min-width: 0; }
.legend legend { float: left; padding: 0 16px 0 0; min-height: 24px; color: var(--soft); font-size: 0.9rem; }
.legend label { display: inline-flex; align-items: center; gap: 6px; min-height: 24px; overflow-wrap: anywhere; }
#progress progress { width: 100%; accent-color: var(--link); } #progress p { margin: 0 0 8px; }
#tooltip { position: fixed; z-index: 2; pointer-events: none; max-width: min(90vw, 420px); padding: 6px 10px;
        border: 1px solid var(--line); border-radius: 6px; background: var(--page); color: var(--ink);
        font-size: 0.85rem; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
#tooltip b { display: block; }
#tooltip span { display: block; padding-left: 10px; border-left: 4px solid; margin: 1px 0; }
#tooltip i { font-style: normal; color: var(--ink); }
pre { overflow-x: auto; background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: 12px;
      font-size: 0.85rem; }
summary { cursor: pointer; min-height: 24px; overflow-wrap: anywhere; }
button { font: inherit; color: var(--ink); background: var(--box); border: 1px solid var(--line); border-radius: 6px;
         padding: 4px 10px; }
a { color: var(--link); } :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.warnings { border-left: 4px solid #b7791f; padding-left: 12px; overflow-wrap: anywhere; }
)";

const std::string_view report_script = R"(
const show = (choice) => {
  for (const mark of document.querySelectorAll('[data-group="' + choice.value + '"]'))
    mark.style.display = choice.checked ? '' : 'none';
};
document.addEventListener('change', (event) => { if (event.target.closest('.legend')) show(event.target); });
document.getElementById('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark' ||
    (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
});

// Values of figures: a box next to the pointer, and a line across the curves.
const box = document.createElement('div');
box.id = 'tooltip';
box.hidden = true;
box.setAttribute('role', 'status');
document.body.append(box);
const short = (value) => String(Number(Number(value).toPrecision(5)));
const curvesOf = (svg) => [...svg.querySelectorAll('.curve')].filter((curve) => curve.style.display !== 'none')
  .map((curve) => ({ name: curve.dataset.name, color: curve.dataset.color,
                     points: curve.dataset.values.split(';').map((point) => point.split(',').map(Number)) }));
const nearest = (points, x) =>
  points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
const words = (tag, text) => { const made = document.createElement(tag); made.textContent = text; return made; };
const hide = () => {
  box.hidden = true;
  document.querySelectorAll('.cursor').forEach((line) => line.remove());
};
const place = (x, y) => {
  box.hidden = false;
  const width = box.offsetWidth, right = document.documentElement.clientWidth;
  box.style.left = Math.max(4, x + 14 + width > right ? Math.min(x, right) - 14 - width : x + 14) + 'px';
  box.style.top = Math.max(4, y + 14 + box.offsetHeight > innerHeight ? y - 14 - box.offsetHeight : y + 14) + 'px';
};
const spanOf = (svg) => ({ x: svg.dataset.x.split(',').map(Number), plot: svg.dataset.plot.split(',').map(Number) });
const describeCurves = (svg, wished, pointer) => {
  const curves = curvesOf(svg);
  if (!curves.length)
    return hide();
  const { x: [low, high], plot: [left, right, top, bottom] } = spanOf(svg);
  const x = nearest(curves.map((curve) => nearest(curve.points, wished)), wished)[0];
  const at = left + (right - left) * (x - low) / (high - low);
  hide();
  const line = document.createElementNS(svg.namespaceURI, 'line');
  for (const [name, value] of Object.entries({ x1: at, x2: at, y1: top, y2: bottom, stroke: 'currentColor',
                                               class: 'cursor', 'pointer-events': 'none' }))
    line.setAttribute(name, value);
  svg.append(line);
  const axis = svg.closest('figure').dataset.axis;
  box.replaceChildren(words('b', axis + ' ' + short(x)));
  for (const { name, color, points } of curves) {
    const [px, py, least, most] = nearest(points, x);
    if (Math.abs(px - x) * (right - left) / (high - low) > 8)
      continue; // this curve has nothing there
    const row = words('span', '');
    row.style.borderLeftColor = color;
    row.append(words('i', (name ? name + ': ' : '') + short(py) +
      (least < most ? ' (' + short(least) + ' to ' + short(most) + ')' : '')));
    box.append(row);
  }
  const area = svg.getBoundingClientRect();
  svg.dataset.tooltip = x;
  place(pointer ? pointer.x : area.left + at * area.width / svg.viewBox.baseVal.width,
        pointer ? pointer.y : area.top + area.height / 3);
};
const describePart = (part, pointer) => {
  hide();
  box.replaceChildren(words('b', part.dataset.tooltip));
  const area = part.getBoundingClientRect();
  place(pointer ? pointer.x : area.right, pointer ? pointer.y : area.top);
};
let pointer = null;
let keyAction = null;  // what the last key showed or hid; kept until the pointer or the focus moves
const updateTooltip = () => {
  const under = pointer && document.elementFromPoint(pointer.x, pointer.y);
  const svg = under && under.closest('figure svg[role=img]');
  if (!svg)
    return hide();
  if (!svg.dataset.plot)
    return under.closest('[data-tooltip]') ? describePart(under.closest('[data-tooltip]'), pointer) : hide();
  const area = svg.getBoundingClientRect(), { x: [low, high], plot: [left, right] } = spanOf(svg);
  const at = (pointer.x - area.left) * svg.viewBox.baseVal.width / area.width;
  describeCurves(svg, low + (high - low) * (at - left) / (right - left), pointer);
};
for (const kind of ['pointermove', 'pointerdown'])
  document.addEventListener(kind, (event) => {
    const still = pointer && pointer.x === event.clientX && pointer.y === event.clientY;
    if (keyAction && still)  // browsers repeat the last move after the page has scrolled
      return;
    keyAction = null;
    pointer = { x: event.clientX, y: event.clientY };
    updateTooltip();
  });
document.documentElement.addEventListener('pointerleave', () => {
  pointer = null;
  if (!keyAction)
    hide();
});
addEventListener('scroll', () => keyAction ? keyAction() : hide(), { passive: true });
document.addEventListener('focusout', () => { keyAction = null; hide(); });
document.addEventListener('keydown', (event) => {
  const svg = event.target.closest && event.target.closest('figure svg[role=img]');
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === 'Escape')
    return (keyAction = hide)();
  if (!svg || !step)
    return;
  event.preventDefault();
  const stops = svg.dataset.plot
    ? [...new Set(curvesOf(svg).flatMap((curve) => curve.points.map((point) => point[0])))].sort((a, b) => a - b)
    : [...svg.querySelectorAll('[data-tooltip]')];
  if (!stops.length)
    return;
  const last = Number(svg.dataset.stop ?? (step > 0 ? -1 : stops.length));
  const stop = Math.max(0, Math.min(stops.length - 1, last + step));
  svg.dataset.stop = stop;
  keyAction = () => {
    if (!svg.isConnected)  // an update has replaced the figure
      return hide();
    return svg.dataset.plot ? describeCurves(svg, stops[stop], null) : describePart(stops[stop], null);
  };
  keyAction();
});
)";

// Replaces only changed parts of the page, so that open sections, selections and focus stay.
const std::string_view live_script = R"(
const events = new EventSource('events' + location.search);
const parts = (main) => [...main.querySelectorAll('[data-live]')];
const frame = (main) => {
  const copy = main.cloneNode(true);
  parts(copy).forEach((part) => part.replaceChildren());
  return [...copy.querySelectorAll('*')].map((part) => part.tagName + part.id).join() + copy.textContent;
};
const renew = (text) => {
  const page = new DOMParser().parseFromString(text, 'text/html');
  const now = document.querySelector('main'), next = page.querySelector('main'), fresh = parts(next);
  const focused = document.activeElement.closest('figure')?.id, stop = document.activeElement.dataset.stop;
  const open = [...now.querySelectorAll('details')].map((part) => part.open);
  if (frame(now) === frame(next))
    parts(now).forEach((part, k) => part.replaceWith(fresh[k]));
  else
    now.replaceWith(next);
  document.querySelectorAll('main details').forEach((part, k) => { part.open = open[k] ?? false; });
  document.title = page.title;
  document.querySelector('h1').textContent = page.querySelector('h1').textContent;
  document.querySelectorAll('.legend input').forEach(show);
  const figure = focused && document.querySelector('#' + focused + ' svg[role=img]');
  if (figure && document.activeElement === document.body) {
    figure.focus();
    if (stop)
      figure.dataset.stop = stop;
  }
  if (pointer)
    updateTooltip();
};
const setState = (text) => { document.getElementById('state').textContent = text; };
events.onmessage = (event) => renew(event.data);
events.addEventListener('end', (event) => {
  events.close();
  renew(event.data);
  setState('This run is no longer served; the page shows its last state.');
});
events.onerror = () => {
  events.close();
  setState('This run has not been served since ' + new Date().toLocaleTimeString() +
    '; the page shows its last known state.');
};
)";

} // namespace mneme
