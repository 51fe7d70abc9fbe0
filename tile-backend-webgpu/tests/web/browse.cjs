// Opens a page in Chromium without a window and runs functions of it. Reads {browser, url, screenshot, calls: [text]} as JSON from the
// standard input, writes {errors, results}: what the page logged as errors, and what each function body gave.
// SwiftShader is the adapter: a processor is one everywhere, and Chromium's Dawn refuses old versions of Mesa.
const fs = require('node:fs');
const { chromium } = require('playwright-core');

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader',
];

async function main() {
  const { browser, url, screenshot, calls } = JSON.parse(fs.readFileSync(0, 'utf8'));
  const opened = await chromium.launch({ executablePath: browser, args: FLAGS });
  try {
    const page = await opened.newPage({ viewport: { width: 1000, height: 560 } });
    const errors = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (line) => line.type() === 'error' && errors.push(line.text()));
    await page.goto(url);
    await page.waitForSelector('body[data-ready]', { state: 'attached', timeout: 60000 });
    const results = [];
    for (const text of calls) results.push(await page.evaluate(`(async () => {${text}})()`));
    if (screenshot) await page.screenshot({ path: screenshot });
    process.stdout.write(JSON.stringify({ errors, results }));
  } finally {
    await opened.close();
  }
}

main().catch((error) => {
  fs.writeSync(2, `${error.message}\n`);
  process.exit(1);
});
