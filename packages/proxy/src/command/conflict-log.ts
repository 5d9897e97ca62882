import type { CommandOutput } from "@plantstore/command-line";
import type { DescriptorReload } from "../create-proxy.ts";

/** Maximum new conflicts logged per upstream. Servers may offer any number of names, and a metric counts conflicts. */
const loggedMax = 20;

/** Logs a conflict when an upstream starts to offer a service or route that belongs to another upstream. */
export class ConflictLog {
  readonly #output: CommandOutput;
  #known: ReadonlySet<string> = new Set();

  constructor(output: CommandOutput) {
    this.#output = output;
  }

  /** Logs the new conflicts. @param names - the upstream names */
  record(names: readonly string[], reloads: readonly DescriptorReload[]): void {
    const lines = reloads.map(({ conflicts }, at) => conflicts.map((each) => `upstream ${names[at]}: ${each}`));
    for (const [at, ofUpstream] of lines.entries()) {
      const added = ofUpstream.filter((line) => !this.#known.has(line));
      for (const line of added.slice(0, loggedMax)) this.#output.err(line);
      const others = added.length - loggedMax;
      if (others > 0) this.#output.err(`upstream ${names[at]}: ${others} more services or routes belong to others`);
    }
    this.#known = new Set(lines.flat());
  }
}
