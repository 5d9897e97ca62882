import { createGrpcTransport } from "@connectrpc/connect-node";
import { serveCalls } from "./serve-calls.ts";

// Caller with connect-node's createGrpcTransport, on one connection.
await serveCalls((baseUrl, { desc, input }) => {
  const transport = createGrpcTransport({ baseUrl });
  return () => transport.unary(desc, undefined, undefined, undefined, input);
});
