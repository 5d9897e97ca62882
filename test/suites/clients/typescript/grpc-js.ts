// Code for stubs of grpc-js, which several tools generate.
import { type CallOptions, type ChannelCredentials, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { readFileSync } from "node:fs";
import { type Call, type Outcome, trusted } from "./script.ts";

/** How the connection is secured. */
export const channelCredentials: ChannelCredentials =
  trusted === undefined ? credentials.createInsecure() : credentials.createSsl(readFileSync(trusted));

/** The call of a stub: metadata, options and a callback. */
export type StubCall = (metadata: Metadata, options: CallOptions, done: (error: ServiceError | null) => void) => void;

/** Makes a call of a stub, and resolves to its outcome. */
export function callStub({ header, timeoutMs }: Call, call: StubCall): Promise<Outcome> {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(header)) metadata.set(name, value);
  const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
  return new Promise((resolve) => {
    call(metadata, options, (error) => {
      resolve(error === null ? { code: 0, message: "" } : outcomeOf(error));
    });
  });
}

/** Returns the outcome of a call that failed. */
export function outcomeOf(error: unknown): Outcome {
  const { code, details } = Object(error);
  return { code, message: details };
}
