import { fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { serveCalls } from "./serve-calls.ts";

// Caller with a grpc-js client, on one connection.
await serveCalls((baseUrl, { desc, input }) => {
  const client = new Client(new URL(baseUrl).host, credentials.createInsecure());
  const path = `/${desc.parent.typeName}/${desc.name}`;
  const serialize = (message: Message): Buffer => Buffer.from(toBinary(desc.input, message));
  const deserialize = (bytes: Buffer): Message => fromBinary(desc.output, bytes);
  return () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, serialize, deserialize, input, (error, response) =>
        error === null ? resolve(response) : reject(error),
      );
    });
});
