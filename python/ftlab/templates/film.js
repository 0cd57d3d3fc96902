// The player of a film. Planes come as bytes, a byte for each tile of each frame: state, valid share, frontier, age, and erases in two.
const at = (id) => document.getElementById(`film-${id}`);
const facts = JSON.parse(at("facts").textContent);
const section = document.getElementById("film");
const { frames, tiles } = facts;
const FREE = 0, OPEN = 1, FULL = 2, COLLECTING = 3, WORN = 4, ERASED = 128, NO_FRONTIER = 255;
const STATES = ["free", "open", "full", "being collected", "worn out"];
const SERIES = facts.colours;
const OPENING = at("about").textContent;
// Frontiers that are used have colours in turn.
const inkOf = (frontier) => SERIES[facts.used.indexOf(frontier) % SERIES.length];
// Where the host wrote nothing frames stand in their order.
const FIRST = facts.ticks[0], SPAN = facts.ticks[frames - 1] - FIRST;
const placeOf = (number) => (SPAN ? (facts.ticks[number] - FIRST) / SPAN : number / Math.max(frames - 1, 1));
const scheme = window.matchMedia("(prefers-color-scheme: dark)");
// Readable by colour-blind eyes; the end stands out from the page.
const LIGHT_TO_DARK = [[240, 236, 180], [154, 201, 143], [67, 153, 142], [43, 101, 128], [42, 48, 92]];
const steps = () => (scheme.matches ? LIGHT_TO_DARK.slice().reverse() : LIGHT_TO_DARK);

async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = new Uint8Array(await new Response(stream).arrayBuffer());
  const plane = (number) => all.subarray(number * frames * tiles, (number + 1) * frames * tiles);
  return { state: plane(0), valid: plane(1), frontier: plane(2), age: plane(3), low: plane(4), high: plane(5) };
}

const planes = await unpack(at("planes").textContent);
const erases = (cell) => (planes.low[cell] + 256 * planes.high[cell]) * facts.erase_step;
// Ages are in steps of a sixth of a doubling: two digits are all that there is.
const age = (cell) => 2 ** ((planes.age[cell] - 1) / 6) - 1;
let frame = 0, colour = "state", chosen = null, pointed = null, timer = null;

const style = (name) => getComputedStyle(section).getPropertyValue(`--${name}`).trim();
const ramp = (share) => {
  const all = steps(), place = Math.min(Math.max(share, 0), 1) * (all.length - 1), low = Math.min(Math.floor(place), all.length - 2);
  const mixed = all[low].map((value, i) => Math.round(value + (all[low + 1][i] - value) * (place - low)));
  return `rgb(${mixed.join(",")})`;
};

function colourOf(cell, inks) {
  const state = planes.state[cell] & 127;
  if (state === FREE) return null;
  if (state === WORN) return inks.worn;
  if (colour === "stream") return planes.frontier[cell] === NO_FRONTIER ? inks.full : inkOf(planes.frontier[cell]);
  if (colour === "age") return planes.age[cell] ? ramp((planes.age[cell] - 1) / Math.max(facts.most_age - 1, 1)) : inks.open;
  if (colour === "erases") return ramp(erases(cell) / Math.max(facts.most_erases, 1));
  return [null, inks.open, inks.full, inks.collecting][state];
}

/// Sharp lines whatever the screen; returns the context, and width and height in CSS pixels.
function sized(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return [context, width];
}

/// As many columns as make tiles large and nearly square.
function layout() {
  const width = at("tiles").clientWidth;
  const size = Math.max(6, Math.min(34, Math.floor(Math.sqrt((width * 400) / tiles))));
  const columns = Math.max(1, Math.floor(width / size));
  return { size, columns, rows: Math.ceil(tiles / columns) };
}

function drawTiles() {
  const { size, columns, rows } = layout();
  const [context] = sized(at("tiles"), rows * size);
  const inks = Object.fromEntries(["open", "full", "collecting", "worn", "quiet", "ink"].map((name) => [name, style(name)]));
  const inner = size - (size > 9 ? 2 : 1);
  for (let tile = 0; tile < tiles; tile += 1) {
    const cell = frame * tiles + tile, state = planes.state[cell] & 127;
    const x = (tile % columns) * size, y = Math.floor(tile / columns) * size;
    const fill = colourOf(cell, inks);
    if (fill === null) outline(context, x, y, inner, inks.quiet, 1);
    else {
      // The height is the valid share; what is invalid shows the colour faintly.
      const height = state === WORN ? inner : (inner * planes.valid[cell]) / 250;
      context.fillStyle = fill;
      context.globalAlpha = 0.3;
      context.fillRect(x, y, inner, inner);
      context.globalAlpha = 1;
      context.fillRect(x, y + inner - height, inner, height);
    }
    if (state === WORN) {
      context.strokeStyle = style("card");
      context.beginPath();
      context.moveTo(x + 2, y + 2);
      context.lineTo(x + inner - 2, y + inner - 2);
      context.stroke();
    }
    if (state === OPEN && colour !== "state") outline(context, x, y, inner, inks.ink, 1.5);
    if (planes.state[cell] & ERASED && colour === "state") {
      context.fillStyle = inks.collecting;
      const corner = Math.max(3, inner / 3);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + corner, y);
      context.lineTo(x, y + corner);
      context.fill();
    }
    if (tile === chosen) outline(context, x, y, inner, inks.ink, 3);
  }
}

function outline(context, x, y, inner, ink, width) {
  context.strokeStyle = ink;
  context.lineWidth = width;
  context.strokeRect(x + width / 2, y + width / 2, inner - width, inner - width);
  context.lineWidth = 1;
}

const LEFT = 40, RIGHT = 8, TOP = 10, BOTTOM = 24;

function drawWaf() {
  const height = 150, [context, width] = sized(at("waf"), height);
  const values = facts.waf.filter((value) => value !== null);
  const low = Math.min(1, ...values), high = Math.max(low + 0.1, ...values);
  const x = (i) => LEFT + placeOf(i) * (width - LEFT - RIGHT);
  const y = (value) => height - BOTTOM - ((value - low) / (high - low)) * (height - BOTTOM - TOP);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = style("quiet");
  context.strokeStyle = style("line");
  context.textBaseline = "middle";
  for (const value of values.length ? [low, (low + high) / 2, high] : []) {
    context.beginPath();
    context.moveTo(LEFT, y(value));
    context.lineTo(width - RIGHT, y(value));
    context.stroke();
    context.textAlign = "right";
    context.fillText(value.toFixed(2), LEFT - 6, y(value));
  }
  if (SPAN) {
    context.textAlign = "left";
    context.fillText("0", LEFT, height - 9);
  }
  context.textAlign = "right";
  context.fillText(SPAN ? `${facts.written[frames - 1]} mapping units written` : "the host wrote nothing", width - RIGHT, height - 9);
  context.strokeStyle = style("accent");
  context.lineWidth = 1.5;
  context.beginPath();
  let going = false;
  facts.waf.forEach((value, i) => {
    if (value === null) going = false;
    else if (going) context.lineTo(x(i), y(value));
    else { context.moveTo(x(i), y(value)); going = true; }
  });
  context.stroke();
  context.strokeStyle = style("ink");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x(frame), TOP - 6);
  context.lineTo(x(frame), height - BOTTOM);
  context.stroke();
  if (facts.waf[frame] !== null) {
    context.fillStyle = style("ink");
    context.beginPath();
    context.arc(x(frame), y(facts.waf[frame]), 3.5, 0, 7);
    context.fill();
  }
}

function drawKey() {
  const box = (background, text) => `<li><i style="background: ${background}"></i>${text}</li>`;
  const gradient = `linear-gradient(to right, ${steps().map((value) => `rgb(${value.join(",")})`).join(", ")})`;
  const scale = (low, high) => `<li>${low} <i class="ramp" style="background: ${gradient}"></i>${high}</li>`;
  const items = {
    state: () => [box("transparent", "free"), box("var(--open)", "open"), box("var(--full)", "full"), box("var(--collecting)", "being collected"), box("var(--worn)", "worn out"),
      box("linear-gradient(135deg, var(--collecting) 45%, transparent 45%)", "erased since the frame before")],
    stream: () => facts.used.map((number) => box(inkOf(number), facts.frontiers[number])).concat(box("transparent; border: 2px solid var(--ink)", "open"),
      facts.used.length > SERIES.length ? [`<li>${facts.used.length} streams have ${SERIES.length} colours: each is used again.</li>`] : []),
    age: () => [scale("written just now", `${about(facts.oldest)} mapping units written since`), box("var(--open)", "open")],
    erases: () => [scale("0", `${Math.round(facts.most_erases)} erases`), box("transparent; border: 2px solid var(--ink)", "open")],
  };
  at("key").innerHTML = items[colour]().join("") + "<li>The filled height is the valid share.</li>";
}

function tell() {
  const other = pointed ?? chosen;
  if (other === null) {
    at("about").textContent = OPENING;
    return;
  }
  const cell = frame * tiles + other, state = planes.state[cell] & 127;
  const first = other * facts.each, last = Math.min(first + facts.each, facts.units) - 1;
  const words = [first === last ? `Reclaim unit ${first}: ${STATES[state]}` : `Reclaim units ${first} to ${last}: mostly ${STATES[state]}`];
  if (state !== FREE && state !== WORN) {
    words.push(`${((100 * planes.valid[cell]) / 250).toFixed(0)} % valid`);
    if (planes.frontier[cell] !== NO_FRONTIER) words.push(facts.frontiers[planes.frontier[cell]]);
    if (planes.age[cell]) words.push(age(cell) < 1 ? "written just now" : `last program ${about(age(cell))} mapping units ago`);
  }
  const count = erases(cell);
  words.push(`${first === last ? count : count.toFixed(1)} erases`);
  at("about").textContent = words.join(", ");
}

/// A number as "about" and two digits.
function about(number) {
  return `about ${Number(number.toPrecision(2)).toLocaleString("en")}`;
}

function show(number) {
  frame = Math.min(Math.max(number, 0), frames - 1);
  const counts = facts.counts[frame];
  at("at").value = frame;
  at("number").textContent = `${frame + 1} of ${frames}`;
  at("written").textContent = facts.written[frame];
  if (at("time")) at("time").textContent = facts.times[frame];
  const waf = facts.waf[frame];
  at("value").textContent = waf === null ? "–" : waf.toFixed(3);
  at("counts").textContent = counts.slice(0, 3).join(" / ");
  at("others").textContent = counts.slice(3).join(" / ");
  at("collections").textContent = frame ? facts.collections[frame] - facts.collections[frame - 1] : "–";
  const said = `frame ${frame + 1} of ${frames}, ${facts.written[frame]} mapping units written, WAF ${waf === null ? "none" : waf.toFixed(2)}`;
  at("at").setAttribute("aria-valuetext", said);
  at("tiles").setAttribute("aria-label", `Reclaim units, ${said}: ${STATES.map((name, i) => `${counts[i]} ${name}`).join(", ")}`);
  drawTiles();
  drawWaf();
  tell();
}

function play(on) {
  window.clearInterval(timer);
  timer = null;
  if (on) {
    if (frame === frames - 1) show(0);
    timer = window.setInterval(() => (frame === frames - 1 ? play(false) : show(frame + 1)), 1000 / Number(at("speed").value));
  }
  at("play").textContent = timer === null ? "Play" : "Pause";
  at("play").setAttribute("aria-pressed", String(timer !== null));
}

const colours = section.querySelectorAll("[name=film-colour]");
const MOVES = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

section.addEventListener("keydown", (event) => {
  const { target, key } = event;
  // Lists and numbers have a use of their own for these keys; in place of a radio button's arrows there are digits.
  if (event.ctrlKey || event.altKey || event.metaKey || target.matches("select, input[type=number]")) return;
  if (key >= "1" && key <= String(colours.length)) {
    colours[key - 1].click();
  } else if (key === " ") {
    if (target === at("play")) return;
    play(timer === null);
  } else if (key in MOVES) {
    play(false);
    show(frame + MOVES[key]);
  } else return;
  event.preventDefault();
});
at("play").addEventListener("click", () => play(timer === null));
at("speed").addEventListener("change", () => timer !== null && play(true));
at("at").addEventListener("input", () => { play(false); show(Number(at("at").value)); });
for (const radio of colours) {
  radio.addEventListener("change", () => { colour = radio.value; drawKey(); show(frame); });
}

function tileAt(event) {
  const { size, columns } = layout(), box = at("tiles").getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) / size), row = Math.floor((event.clientY - box.top) / size);
  const tile = row * columns + column;
  return column >= 0 && column < columns && row >= 0 && tile < tiles ? tile : null;
}
at("tiles").addEventListener("pointermove", (event) => { pointed = tileAt(event); tell(); });
at("tiles").addEventListener("pointerleave", () => { pointed = null; tell(); });
at("tiles").addEventListener("click", (event) => {
  chosen = tileAt(event);
  at("unit").value = chosen === null ? "" : chosen * facts.each;
  show(frame);
});
at("unit").addEventListener("input", () => {
  const number = at("unit").valueAsNumber;
  const valid = number >= 0 && number < facts.units;
  chosen = valid ? Math.floor(number / facts.each) : null;
  show(frame);
  if (!valid && at("unit").value !== "") at("about").textContent = `Reclaim units have the numbers 0 to ${facts.units - 1}.`;
});
at("waf").addEventListener("click", (event) => {
  const box = at("waf").getBoundingClientRect();
  const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
  const distance = (i) => Math.abs(placeOf(i) - share);
  play(false);
  show(facts.ticks.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0));
});
new ResizeObserver(() => show(frame)).observe(section);
scheme.addEventListener("change", () => { drawKey(); show(frame); });
drawKey();
show(0);
section.dataset.ready = "true";
