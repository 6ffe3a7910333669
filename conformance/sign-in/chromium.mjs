#!/usr/bin/env node
// Chromium as the browser of a sign-in, for tests: signs in as `ada`, consents, and waits for the page that ends it.
// `BROWSER="node chromium.mjs"`; PLAYWRIGHT names the folder with `playwright-core`, PICTURES where pictures go.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { PLAYWRIGHT, PICTURES, PICTURE = 'sign-in', CHROMIUM = '/usr/bin/chromium' } = process.env;
const { chromium } = createRequire(join(PLAYWRIGHT, 'package.json'))('playwright-core');
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = await browser.newPage({ viewport: { width: 900, height: 560 } });
let number = 0;
const picture = async (name) => {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${PICTURE}-${++number}-${name}.png`) });
};
try {
  await page.goto(process.argv[2]);
  if (await page.locator('input[name=login]').count()) {
    await picture('login');
    await page.fill('input[name=login]', 'ada');
    await page.fill('input[name=password]', 'x');
    await page.click('button[type=submit]');
  }
  if (await page.locator('form').count()) {
    await picture('consent');
    await page.click('button[type=submit]');
  }
  await page.waitForURL('http://127.0.0.1:*/callback*');
  await page.setViewportSize({ width: 900, height: 260 });
  await picture('end');
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture('end-dark');
  console.log(await page.title());
} finally {
  await browser.close();
}
