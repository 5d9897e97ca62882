import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, firefox, type LaunchOptions } from "playwright-core";

/** What a browser is asked for at its start. */
export interface BrowserOptions {
  /** The colours that its user has chosen, which Firefox is told when it starts, and Chromium for each page. */
  readonly look?: Pick<BrowserContextOptions, "colorScheme" | "forcedColors">;
  /** The folder of what is downloaded. */
  readonly downloadsPath?: string;
}

/** The browser that the suite drives: Chromium, or Firefox where `TEST_BROWSER` is `firefox`. */
export const browserName: "chromium" | "firefox" = process.env["TEST_BROWSER"] === "firefox" ? "firefox" : "chromium";

/** Where the browsers are, by the names that systems give them; `CHROMIUM` and `FIREFOX` name others. */
const candidates = {
  chromium: [
    process.env["CHROMIUM"],
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  ],
  firefox: [
    process.env["FIREFOX"],
    "/usr/bin/firefox-esr",
    "/usr/bin/firefox",
    "/Applications/Firefox.app/Contents/MacOS/firefox",
  ],
} as const;

/** Starts the browser of this machine without a window. Throws when there is none. */
export async function openBrowser({ look = {}, downloadsPath }: BrowserOptions = {}): Promise<Browser> {
  const executablePath = candidates[browserName].find((path) => path !== undefined && existsSync(path));
  if (executablePath === undefined) {
    throw new Error(`no ${browserName} is here: install it, or name it by ${browserName.toUpperCase()}`);
  }
  const options = { executablePath, ...(downloadsPath !== undefined && { downloadsPath }) };
  return browserName === "chromium" ? await openChromium(options) : await openFirefox(options, look);
}

async function openChromium(options: LaunchOptions): Promise<Browser> {
  // Its sandbox does not start for root, and in a container the tests run as root.
  const isRoot = process.getuid?.() === 0;
  return await chromium.launch({ ...options, args: isRoot ? ["--no-sandbox"] : [] });
}

async function openFirefox(options: LaunchOptions, look: BrowserContextOptions): Promise<Browser> {
  // As it is installed, it is driven by WebDriver BiDi, which cannot choose colours.
  return await firefox.launch({
    ...options,
    channel: "moz-firefox",
    firefoxUserPrefs: {
      "layout.css.prefers-color-scheme.content-override": look.colorScheme === "dark" ? 0 : 1,
      "browser.display.document_color_use": look.forcedColors === "active" ? 2 : 1,
    },
  });
}
