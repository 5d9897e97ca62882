import { connect } from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import { serveCalls } from "./serve-calls.ts";

// Caller with only node:http2, on one connection. The request is encoded once, and responses are not decoded.
await serveCalls((baseUrl, { desc, input }) => {
  const session = connect(baseUrl);
  const message = toBinary(desc.input, input);
  const body = Buffer.alloc(5 + message.byteLength);
  body.writeUInt32BE(message.byteLength, 1);
  body.set(message, 5);
  const header = {
    ":method": "POST",
    ":path": `/${desc.parent.typeName}/${desc.name}`,
    "content-type": "application/grpc+proto",
    te: "trailers",
  };
  return () =>
    new Promise<void>((resolve, reject) => {
      let status: unknown;
      const stream = session.request(header);
      stream.on("trailers", (trailer) => {
        status = trailer["grpc-status"];
      });
      stream.on("error", reject).on("end", () => {
        if (status === "0") resolve();
        else reject(new Error(`grpc-status ${String(status)}`));
      });
      stream.resume().end(body);
    });
});
