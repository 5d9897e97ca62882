import { type CalledMethod, serveCalls } from "./serve-calls.ts";
import { importEntry } from "../servers/package-code.ts";

// Caller with this project's createGrpcTransport, on one connection.
const { createGrpcTransport } = await importEntry<typeof import("../../proxy/src/client/entry.ts")>(
  "protoport/proxy/src/client/entry.ts",
);

await serveCalls((baseUrl, { desc, input }: CalledMethod) => {
  const transport = createGrpcTransport({ baseUrl });
  return () => transport.unary(desc, undefined, undefined, undefined, input);
});
