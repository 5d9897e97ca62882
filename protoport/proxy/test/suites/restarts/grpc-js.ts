/** Calls with grpc-js: `node grpc-js.ts PORT [retry]`. */
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { callUntilTheEnd } from "./calls.ts";

const [, , port, setting] = process.argv;
const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
const metadata = new Metadata({ waitForReady: setting === "retry" });
const asBuffer = (value: Buffer): Buffer => value;

await callUntilTheEnd(
  () =>
    new Promise((resolve, reject) => {
      const path = "/greenhouse.v1.GreenhouseService/GetReading";
      const options = { deadline: Date.now() + 20_000 };
      client.makeUnaryRequest(path, asBuffer, asBuffer, Buffer.alloc(0), metadata, options, (error, value) =>
        error === null ? resolve(value) : reject(new Error(error.message)),
      );
    }),
);
