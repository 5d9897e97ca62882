// Deletes plants over REST with openapi-fetch and the types that openapi-typescript generates from openapi.json.
import createClient from "openapi-fetch";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { paths } from "./openapi.d.ts";

// DEADLINE_EXCEEDED's number, when the client times out.
const deadlineExceeded = 4;

const [, , authority = "", trusted] = process.argv;
if (trusted !== undefined) setDefaultCACertificates([...getCACertificates(), readFileSync(trusted, "utf8")]);
const client = createClient<paths>({ baseUrl: `${trusted === undefined ? "http" : "https"}://${authority}` });

for await (const line of createInterface(process.stdin)) {
  const [id = "", token = "-", timeout = "-"] = line.split(" ");
  console.log(await deletePlant(BigInt(id), token, timeout === "-" ? undefined : Number(timeout)));
}

async function deletePlant(id: bigint, token: string, timeoutMs: number | undefined): Promise<string> {
  // The generated type for an int64 is number, which has only 53 bits. The path contains the digits unchanged.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const path = { id: id as unknown as number };
  const headers = token === "-" ? {} : { authorization: `Bearer ${token}` };
  const signal = timeoutMs === undefined ? null : AbortSignal.timeout(timeoutMs);
  try {
    const { error } = await client.DELETE("/plants/{id}", { params: { path }, headers, signal });
    return error === undefined ? "0" : `${error.error} ${error.message}`;
  } catch (error) {
    if (error instanceof DOMException && error.name === "TimeoutError") return `${deadlineExceeded} ${error.message}`;
    throw error;
  }
}
