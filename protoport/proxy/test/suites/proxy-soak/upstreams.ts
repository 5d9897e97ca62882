import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandLine, projectFolder, startNode } from "@protoport/testing/process";

/** An upstream that can be killed, suspended and restarted on its port. */
export class UpstreamProcess implements AsyncDisposable {
  readonly #file: string;
  #server: CommandLine | undefined;
  #port = 0;

  private constructor(file: string) {
    this.#file = file;
    writeFileSync(file, "");
  }

  /** Starts an upstream that records each call in a file in a folder. */
  static async open(folder: string, name: string): Promise<UpstreamProcess> {
    const upstream = new UpstreamProcess(join(folder, name));
    await upstream.start();
    return upstream;
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const program = join(projectFolder, "protoport/proxy/test/suites/proxy-soak/server.ts");
    const server = startNode([program, String(this.#port), this.#file], projectFolder);
    this.#server = server;
    const [, port] = await server.find(/^(\d+)$/m);
    this.#port = Number(port);
  }

  suspend(): void {
    this.#server?.process.kill("SIGSTOP");
  }

  resume(): void {
    this.#server?.process.kill("SIGCONT");
  }

  async restart(): Promise<void> {
    this.#server?.process.kill("SIGTERM");
    await this.#server?.end();
    await this.start();
  }

  async kill(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }

  calls(): readonly number[] {
    const lines = readFileSync(this.#file, "utf8").split("\n");
    // The last line is empty or incomplete.
    return lines.slice(0, -1).map(Number);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
