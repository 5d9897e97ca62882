import { join } from "node:path";
import type { Address } from "../http/exchange.ts";
import { projectFolder } from "./child-program.ts";
import { type CommandLine, startNode } from "./command-line.ts";

/** An example server in a separate process. Dispose of the process with `await using`. */
export type ExampleServer = CommandLine & { readonly address: Address };

/** Starts a program from protoport/examples/ on free ports. The program prints its URL. */
export async function startExample(file: string): Promise<ExampleServer> {
  const example = startNode([join(projectFolder, "protoport/examples", file), "0", "0"], projectFolder);
  const [, address = "", port = ""] = await example.find(/^http:\/\/([\d.]+):(\d+)$/m);
  return { ...example, address: { address, port: Number(port) } };
}
