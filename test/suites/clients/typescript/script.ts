import { createInterface } from "node:readline";
import { callFor, count, echo, type Streams } from "./load.ts";

export const authority: string = process.argv[2] ?? "";
/** The file with the authority to trust, or `undefined` for cleartext. */
export const trusted: string | undefined = process.argv[3];

export const url: string = `${trusted === undefined ? "http" : "https"}://${authority}`;
/** A plant, the credential as header fields, and the timeout. */
export type Call = { id: bigint; header: Readonly<Record<string, string>>; timeoutMs: number | undefined };

export type Outcome = { readonly code: number; readonly message: string };

/** Runs the commands on standard input, and prints their outcomes; see `ClientProgram`. */
export async function run(deletePlant: (call: Call) => Promise<Outcome>, streams?: Streams): Promise<void> {
  for await (const line of createInterface(process.stdin)) {
    const [what = "", token = "-", amount = "-"] = line.split(" ");
    const header = token === "-" ? {} : { authorization: `Bearer ${token}` };
    if (what === "load") await callFor(Number(amount), (id) => deletePlant({ id, header, timeoutMs: undefined }));
    else if (what === "echo" && streams !== undefined) await echo(Number(amount), streams);
    else if (what === "count" && streams !== undefined) await count(Number(amount), streams);
    else {
      const timeoutMs = amount === "-" ? undefined : Number(amount);
      const { code, message } = await deletePlant({ id: BigInt(what), header, timeoutMs });
      console.log(`${code} ${message}`.trim());
    }
  }
}
