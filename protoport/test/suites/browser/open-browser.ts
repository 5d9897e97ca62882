import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, firefox, type LaunchOptions } from "playwright-core";

/** A browser's options. */
export interface BrowserOptions {
  /** The user's preferred colours, which are set when Firefox starts, and for each page in Chromium. */
  readonly appearance?: Pick<BrowserContextOptions, "colorScheme" | "forcedColors">;
  /** The folder for downloads. */
  readonly downloadsPath?: string;
}

/** The browser that the suite drives: Chromium, or Firefox if `TEST_BROWSER` is `firefox`. */
export const browserName: "chromium" | "firefox" = process.env["TEST_BROWSER"] === "firefox" ? "firefox" : "chromium";

/** The browsers' usual names and paths; `CHROMIUM` and `FIREFOX` name others. */
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

/** Starts this machine's browser without a window. Throws when no browser is installed. */
export async function openBrowser({ appearance = {}, downloadsPath }: BrowserOptions = {}): Promise<Browser> {
  const executablePath = candidates[browserName].find((path) => path !== undefined && existsSync(path));
  if (executablePath === undefined) {
    throw new Error(`${browserName} not found; install it, or set ${browserName.toUpperCase()} to its path`);
  }
  const options = { executablePath, ...(downloadsPath !== undefined && { downloadsPath }) };
  return browserName === "chromium" ? await openChromium(options) : await openFirefox(options, appearance);
}

async function openChromium(options: LaunchOptions): Promise<Browser> {
  // The sandbox does not work as root, and in a container the tests run as root.
  const isRoot = process.getuid?.() === 0;
  return await chromium.launch({ ...options, args: isRoot ? ["--no-sandbox"] : [] });
}

async function openFirefox(options: LaunchOptions, appearance: BrowserContextOptions): Promise<Browser> {
  // WebDriver BiDi, which drives an unpatched Firefox, cannot set colours.
  return await firefox.launch({
    ...options,
    channel: "moz-firefox",
    firefoxUserPrefs: {
      "layout.css.prefers-color-scheme.content-override": appearance.colorScheme === "dark" ? 0 : 1,
      "browser.display.document_color_use": appearance.forcedColors === "active" ? 2 : 1,
    },
  });
}
