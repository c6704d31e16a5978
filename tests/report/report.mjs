// SPDX-License-Identifier: Apache-2.0
// What a reader does with the report, and what a browser says of it. TAP on standard output.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const dir = process.argv[2];
const url = `file://${dir}/report.html`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
let failed = 0;

// A page of its own; whatever it says or asks for fails the test.
async function test(name, options, body) {
  const context = await browser.newContext({ reducedMotion: "reduce", viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const said = [];
  page.on("console", (m) => said.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => said.push(`error: ${e.message}`));
  page.on("request", (r) => r.url() !== url && !r.url().startsWith("data:") && said.push(`request: ${r.url()}`));
  page.on("dialog", (d) => (said.push(`dialog: ${d.message()}`), d.dismiss()));
  page.setDefaultTimeout(10000);
  try {
    await page.goto(url);
    await body(page);
    assert.deepEqual(said, []);
    console.log(`ok - report: ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok - report: ${name}\n# ${String(e.stack).replaceAll("\n", "\n# ")}`);
  }
  await context.close();
}

const shown = (page) => page.locator("#table tbody tr:not([hidden])");
const column = (page, n) =>
  shown(page).evaluateAll((rows, n) => rows.map((r) => (r.cells[n].dataset.sort === undefined ? NaN : Number(r.cells[n].dataset.sort))), n);
const sorted = (values, direction) => {
  const present = values.filter((v) => !Number.isNaN(v));
  assert.ok(values.slice(0, present.length).every((v) => !Number.isNaN(v)), "what has no value comes last");
  assert.ok(present.length > 3);
  for (let i = 1; i < present.length; i++) assert.ok(direction * (present[i] - present[i - 1]) >= 0, String(values));
};
const noOverflow = async (page) => {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `${wide} px wide in a window of ${window}`);
};
// Of text on its background, as WCAG 2 counts it.
const contrasts = (page) =>
  page.evaluate(() => {
    const light = (color) => {
      const [r, g, b] = color.match(/[\d.]+/g).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = light(getComputedStyle(document.body).backgroundColor);
    const of = (color) => (Math.max(light(color), paper) + 0.05) / (Math.min(light(color), paper) + 0.05);
    return ["body", "h1", ".sub", ".note", ".standing.worse", ".standing.watch", ".standing.better", ".history text"].map((s) => {
      const style = getComputedStyle(document.querySelector(s));
      return [s, of(s.endsWith("text") ? style.fill : style.color)];
    });
  });

await test("the verdict is what one sees first", {}, async (page) => {
  await page.screenshot({ path: `${dir}/desktop.png` });
  assert.equal(await page.locator("h1").innerText(), "1 regression, 1 missing");
  const first = page.locator(".findings li").first();
  assert.match(await first.innerText(), /gpt-5b, 64 GPUs[^]*FLOP\/s −(2\.[5-9]|3\.[0-5])\s%[^]*since 19 Nov 2026/);
  const box = await first.boundingBox();
  assert.ok(box.y + box.height < 900, "below the first screen");
});

await test("headings, ids and links are in order", {}, async (page) => {
  const levels = await page.locator("h1, h2, h3").evaluateAll((h) => h.map((e) => Number(e.tagName[1])));
  assert.equal(levels.filter((l) => l === 1).length, 1);
  levels.forEach((l, i) => assert.ok(i === 0 ? l === 1 : l <= levels[i - 1] + 1, String(levels)));
  const [ids, hashes] = await page.evaluate(() => [
    Array.from(document.querySelectorAll("[id]"), (e) => e.id),
    Array.from(document.querySelectorAll("a[href]"), (a) => a.getAttribute("href")),
  ]);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(hashes.length > 20);
  for (const h of hashes) assert.ok(h[0] === "#" && ids.includes(h.slice(1)), `link to ${h}`);
  const unnamed = await page.locator("svg:not([aria-label])").count();
  assert.equal(unnamed, 0);
});

await test("names are text, whatever they hold", {}, async (page) => {
  assert.match(await page.title(), /^1 regression/);
  assert.equal(await page.locator("main img, main b, main i, main script").count(), await page.locator("figcaption > b").count());
  assert.ok((await page.locator("#table").innerText()).includes(`<script>document.title='no'</script><b>gpt&"'`));
});

await test("sorting, by mouse", {}, async (page) => {
  const head = page.locator("#table thead th").nth(3);
  const button = head.getByRole("button", { name: "Change" });
  await button.click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  sorted(await column(page, 3), -1);
  await button.click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  sorted(await column(page, 3), 1);
  assert.equal(await page.locator("#table [aria-sort]").count(), 1);
  await page.getByRole("button", { name: "Series" }).click();
  const names = (await shown(page).locator("th").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));
  assert.deepEqual(names, [...names].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), "en", { numeric: true })));
});

await test("everything, by keyboard", {}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").innerText(), "Skip to the series");
  assert.ok((await page.locator(":focus").boundingBox()).x >= 0, "the skip link shows itself");
  await page.keyboard.press("Enter");
  assert.equal(new URL(page.url()).hash, "#series");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").getAttribute("id"), "find");
  await page.keyboard.type("gpt-20b");
  for (const row of await shown(page).allInnerTexts()) assert.ok(row.includes("gpt-20b"), row);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator(":focus").innerText(), "Standing");
  assert.notEqual(await page.locator(":focus").evaluate((e) => getComputedStyle(e).outlineStyle), "none");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  assert.equal(await page.locator("#table [aria-sort]").innerText(), "Last night");
  const details = page.locator("summary").first();
  await details.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("details[open]").count(), 1);
});

await test("filtering", {}, async (page) => {
  const rows = await shown(page).count();
  assert.equal(rows, 12);
  await page.locator("#find").fill("H100 LLAMA");
  assert.equal(await shown(page).count(), 1);
  assert.equal(await page.locator("#shown").innerText(), "1 of 12");
  await page.locator("#find").fill("there is none");
  assert.equal(await shown(page).count(), 0);
  assert.ok(await page.locator("#nothing").isVisible());
  await page.locator("#find").fill("");
  await page.locator("#show").selectOption("worse");
  assert.equal(await shown(page).count(), 1);
  assert.match(await shown(page).innerText(), /worse/);
  await page.locator("#show").selectOption("");
  assert.equal(await shown(page).count(), rows);
});

await test("a section has samples, changes, the simulated value, what else changed", {}, async (page) => {
  const one = page.locator("section.one.worse");
  assert.equal(await one.count(), 1);
  const first = one.locator("svg.history").first();
  const marks = await first.locator("g.change text").allTextContents();
  assert.equal(marks.length, 1, String(marks));
  assert.match(marks[0], /^−(2\.[5-9]|3\.[0-5]) %$/);
  const dots = (await first.locator("path.samples").getAttribute("d")).split("h0").length - 1;
  assert.ok(dots > 250 && dots <= 300, `${dots} dots for five samples of 60 nights`);
  assert.equal(await first.locator("path.simulated").count(), 2, "a line in each panel");
  assert.match(await one.locator("figcaption").first().innerText(), /simulated on perlmutter: 2\.79 EFLOP\/s/);
  assert.match(await one.locator(".changes").innerText(), /NCCL_ALGO Ring → Tree[^]*NCCL_NOTE not set → <i>&/);
  await one.screenshot({ path: `${dir}/section.png` });
});

await test("dark mode", { colorScheme: "dark" }, async (page) => {
  await page.screenshot({ path: `${dir}/dark.png` });
  for (const [what, ratio] of await contrasts(page)) assert.ok(ratio >= 4.5, `${what}: contrast ${ratio.toFixed(2)}`);
  const stroke = () => page.locator("path.median").first().evaluate((e) => getComputedStyle(e).stroke);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = [await stroke(), await paper()];
  await page.emulateMedia({ colorScheme: "light" });
  assert.notEqual(await stroke(), dark[0]);
  assert.notEqual(await paper(), dark[1]);
  for (const [what, ratio] of await contrasts(page)) assert.ok(ratio >= 4.5, `light, ${what}: contrast ${ratio.toFixed(2)}`);
});

const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
await test("on a phone", phone, async (page) => {
  await page.screenshot({ path: `${dir}/phone.png` });
  await noOverflow(page);
  const text = await page.locator(".history text").first().evaluate((e) => {
    const svg = e.ownerSVGElement;
    return (parseFloat(getComputedStyle(e).fontSize) * svg.getBoundingClientRect().width) / svg.viewBox.baseVal.width;
  });
  assert.ok(text >= 8.5, `pictures have text of ${text.toFixed(1)} px`);
  await page.getByRole("button", { name: "Change" }).tap();
  sorted(await column(page, 3), -1);
  await page.locator("summary").first().tap();
  await noOverflow(page);
  await page.locator("#table").screenshot({ path: `${dir}/phone-table.png` });
});
await test("in a narrow window", { viewport: { width: 320, height: 600 } }, noOverflow);

await test("on paper", {}, async (page) => {
  const pdf = await page.pdf({ path: `${dir}/report.pdf`, format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages >= 2 && pages <= 12, `${pages} pages`);
  await page.emulateMedia({ media: "print" });
  assert.ok(!(await page.locator("#filter").isVisible()));
  assert.ok(await page.locator("section.one.worse figure").first().isVisible());
  assert.ok(!(await page.locator("section.one.same").first().isVisible()));
});

await test("without its script", { javaScriptEnabled: false }, async (page) => {
  assert.ok(!(await page.locator("#filter").isVisible()));
  assert.equal(await page.locator("#table tbody tr").count(), 12);
  assert.match(await page.locator("#table tbody tr").first().innerText(), /worse/);
  assert.equal(await page.locator("section.one").count(), 12);
});

await browser.close();
process.exit(failed ? 1 : 0);
