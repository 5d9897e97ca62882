import { createInterface } from "node:readline";

/** Where the server is. */
export const authority: string = process.argv[2] ?? "";

/** The file of the authority to trust; `undefined` for cleartext. */
export const trusted: string | undefined = process.argv[3];

/** The base URL of the server. */
export const url: string = `${trusted === undefined ? "http" : "https"}://${authority}`;

/** One call: the plant, the credential as header fields, and how long to wait. */
export interface Call {
  readonly id: bigint;
  readonly header: Readonly<Record<string, string>>;
  readonly timeoutMs: number | undefined;
}

/** What a call came to: the number of a gRPC code, and a message. */
export interface Outcome {
  readonly code: number;
  readonly message: string;
}

/** Reads calls from the standard input, one per line, and prints what each came to. */
export async function run(deletePlant: (call: Call) => Promise<Outcome>): Promise<void> {
  for await (const line of createInterface(process.stdin)) {
    const [id = "", token = "-", timeout = "-"] = line.split(" ");
    const { code, message } = await deletePlant({
      id: BigInt(id),
      header: token === "-" ? {} : { authorization: `Bearer ${token}` },
      timeoutMs: timeout === "-" ? undefined : Number(timeout),
    });
    console.log(`${code} ${message}`.trim());
  }
}
