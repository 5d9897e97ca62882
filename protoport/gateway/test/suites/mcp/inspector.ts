import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";

const launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
const program = join(import.meta.dirname, launcher);

/** Runs the inspector's command line against a server, and returns what it prints. */
export async function inspect(url: string, authorization: string, args: readonly string[]): Promise<string> {
  using home = createTempFolder();
  const common = ["--cli", url, "--transport", "http", "--header", `Authorization: ${authorization}`];
  const options = { env: { ...process.env, HOME: home.path }, maxBuffer: 16 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...common, ...args], options);
  return stdout;
}
