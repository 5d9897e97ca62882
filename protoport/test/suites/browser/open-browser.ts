import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { createGateway, type GatewayOptions } from "../../../gateway/src/index.ts";

/** Chromium's usual names and paths; `CHROMIUM` names another. */
const candidates = [
  process.env["CHROMIUM"],
  // A page costs a third of the CPU time that it costs in a browser with a user interface.
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Starts this machine's Chromium without a window. Throws when Chromium is not installed. */
export async function openBrowser(downloadsPath?: string): Promise<Browser> {
  const executablePath = candidates.find((path) => path !== undefined && existsSync(path));
  if (executablePath === undefined) throw new Error("Chromium not found; install it, or set CHROMIUM to its path");
  // The sandbox does not work as root, and in a container the tests run as root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await chromium.launch({ executablePath, args, ...(downloadsPath !== undefined && { downloadsPath }) });
}

/** Starts a gateway on a free port. Dispose of it with `await using`. */
export async function startGateway(options: GatewayOptions): Promise<AsyncDisposable & { readonly baseUrl: string }> {
  const gateway = createGateway(options);
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return { baseUrl: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => gateway.close() };
}
