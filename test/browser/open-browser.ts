import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Where Chromium is, by the names that systems give it; `CHROMIUM` names another. */
const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Starts a Chromium of this machine without a window. Throws when there is none. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = candidates.find((path) => path !== undefined && existsSync(path));
  if (executablePath === undefined) throw new Error("no Chromium is here: install it, or name it by CHROMIUM");
  // Chromium's sandbox does not start for root, and in a container the tests run as root.
  const isRoot = process.getuid?.() === 0;
  return await chromium.launch({ executablePath, args: isRoot ? ["--no-sandbox"] : [] });
}
