// What makes a page hard to read or to use, as a list of sentences; empty where there is nothing.
(() => {
  const wrong = [];
  const say = (what, element) =>
    wrong.push(`${what}: ${element ? element.outerHTML.slice(0, 120) : ""}`);
  if (!document.documentElement.lang) say("no language");
  if (!document.title.trim()) say("no title");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => [h, Number(h.tagName[1])]);
  if (levels.filter(([, level]) => level === 1).length !== 1) say("not one h1");
  levels.forEach(([h, level], i) => {
    if (i && level > levels[i - 1][1] + 1) say("a level of headings is left out", h);
  });
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption || !table.caption.textContent.trim()) say("a table without caption", table);
    if (!table.tHead) say("a table without header", table);
    for (const th of table.querySelectorAll("th")) if (!th.scope) say("a header without scope", th);
    for (const row of table.tBodies[0]?.rows ?? [])
      if (row.cells.length !== table.tHead?.rows[0].cells.length) say("a row of other length", row);
  }
  for (const svg of document.querySelectorAll("svg"))
    if (!svg.closest("[aria-hidden=true]") && !(svg.getAttribute("role") === "img" && svg.querySelector("title")?.textContent.trim()))
      say("a picture without title", svg);
  for (const img of document.querySelectorAll("img")) if (!img.alt.trim()) say("a picture without alt", img);
  for (const field of document.querySelectorAll("input, select, textarea"))
    if (!field.labels?.length && !field.ariaLabel) say("a field without label", field);
  for (const button of document.querySelectorAll("button, a[href]"))
    if (!button.textContent.trim() && !button.ariaLabel) say("nothing to press by name", button);
  for (const link of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(link.getAttribute("href").slice(1))) say("a link to nowhere", link);
  for (const link of document.querySelectorAll("link[href]"))
    if (!link.href.startsWith("data:")) say("a link to the network", link);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => say(`an id twice, ${id}`));
  for (const one of document.querySelectorAll("[aria-labelledby]"))
    for (const id of one.getAttribute("aria-labelledby").split(" "))
      if (!document.getElementById(id)) say(`named by nothing, ${id}`, one);

  // Contrast of text with what lies behind it (WCAG 2.2, 1.4.3).
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const channels = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(color);
  };
  const light = ([r, g, b]) =>
    [r, g, b].reduce((sum, v, i) => {
      const s = v / 255;
      return sum + [0.2126, 0.7152, 0.0722][i] * (s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4);
    }, 0);
  const over = (top, under, alpha) => under.map((v, i) => top[i] * alpha + v * (1 - alpha));
  const opacity = (element) => {
    let found = 1;
    for (let one = element; one; one = one.parentElement) found *= Number(getComputedStyle(one).opacity);
    return found;
  };
  // Every color that may lie behind a text: of its ancestors, bars drawn in them, an SVG's boxes.
  const boxes = new Map();
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const style = getComputedStyle(one);
      const color = channels(style.backgroundColor);
      const drawn = style.backgroundImage.match(/(rgba?|color|oklch|oklab)\([^()]*\)/g) ?? [];
      layers.unshift([color, drawn.map(channels)]);
      if (color[3] === 255) break;
    }
    let found = [[255, 255, 255]];
    for (const [color, drawn] of layers) {
      found = found.map((under) => over(color, under, color[3] / 255));
      found = found.flatMap((under) => [under, ...drawn.map((one) => over(one, under, one[3] / 255))]);
    }
    const svg = element.closest("svg");
    if (svg && !boxes.has(svg))
      boxes.set(svg, [...svg.querySelectorAll("rect")].map((one) => [one, one.getBoundingClientRect(), getComputedStyle(one)]));
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    for (const [box, at, style] of svg ? boxes.get(svg) : []) {
      const before = box.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (!before || style.fill === "none" || x < at.left || x > at.right || y < at.top || y > at.bottom) continue;
      const fill = channels(style.fill);
      found = found.map((under) => over(fill, under, (fill[3] / 255) * style.fillOpacity * style.opacity));
    }
    return found;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest("script, style, title, desc")) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest("svg") && style.fill !== "none";
    const text = drawn ? style.fill : style.color;
    const under = behind(element);
    const key = `${text} ${under.join(";")} ${element.tagName} ${opacity(element)} ${style.fillOpacity}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const ink = channels(text);
    const alpha = (ink[3] / 255) * opacity(element) * (drawn ? style.fillOpacity : 1);
    const ratios = under.map((color) => {
      const [a, b] = [light(over(ink, color, alpha)), light(color)].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    });
    if (Math.min(...ratios) < 4.5) say(`contrast ${Math.min(...ratios).toFixed(2)}`, element);
  }
  const root = document.scrollingElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.body.querySelectorAll("*")].find(
      (one) => one.getBoundingClientRect().right > root.clientWidth + 1 && !one.closest(".scroll"),
    );
    say(`wider than the window by ${root.scrollWidth - root.clientWidth} pixels`, wide);
  }
  dispatchEvent(new Event("resize")); // that of the window itself comes with the next frame
  for (const region of document.querySelectorAll(".scroll, figure > div"))
    if (region.scrollWidth > region.clientWidth + 1 && getComputedStyle(region, "::before").content === "none")
      say("cut without a sign", region);
  return wrong;
})();
