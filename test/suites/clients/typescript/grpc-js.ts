// Code for grpc-js stubs, which several tools generate.
import { type CallOptions, type ChannelCredentials, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { readFileSync } from "node:fs";
import { type Call, type Outcome, trusted } from "./script.ts";

export const channelCredentials: ChannelCredentials =
  trusted === undefined ? credentials.createInsecure() : credentials.createSsl(readFileSync(trusted));

export type StubCall = (metadata: Metadata, options: CallOptions, done: (error: ServiceError | null) => void) => void;

export function callStub({ header, timeoutMs }: Call, call: StubCall): Promise<Outcome> {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(header)) metadata.set(name, value);
  const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
  return new Promise((resolve) => {
    call(metadata, options, (error) => resolve(error === null ? { code: 0, message: "" } : outcomeOf(error)));
  });
}

export function outcomeOf(error: unknown): Outcome {
  const { code, details } = Object(error);
  return { code, message: details };
}
