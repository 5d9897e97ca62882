import { createHash } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import type { ServiceImpl } from "@connectrpc/connect";
import { createTestGateway, FileService, KitchenSink } from "@protoport/testing/proxy";
import { contentOf, piecesOf } from "./content.ts";

// An upstream in the soak test, started by `node protoport/proxy/test/suites/proxy-soak/server.ts PORT FILE`. The server
// records each call's number in the file, so that records survive when the process is killed, and echoes the request.
// SIGTERM stops it gracefully.

const [port, path = ""] = process.argv.slice(2);
const log = openSync(path, "a");
const record = (number: number | string): void => void writeSync(log, `${number}\n`);

const sinks: Partial<ServiceImpl<typeof KitchenSink>> = {
  create: (sink, { method }) => {
    record(sink.fInt32);
    return { rpc: method.name, sink };
  },
};

const files: Partial<ServiceImpl<typeof FileService>> = {
  async *download({ name }) {
    record(name);
    for (const data of piecesOf(contentOf(Number(name)))) yield { data };
  },
  upload: async (requests) => {
    let first = "";
    const hash = createHash("sha256");
    for await (const { name, file } of requests) {
      if (first === "") record((first = name));
      hash.update(file?.data ?? "");
    }
    return { name: first, note: hash.digest("hex") };
  },
};

const gateway = createTestGateway({
  routes: (router) => void router.service(KitchenSink, sinks).service(FileService, files),
});
const address = await gateway.listen({ host: "127.0.0.1", port: Number(port) });
process.once("SIGTERM", () => void gateway.drain(5_000).then(() => process.exit()));
process.stdout.write(`${address.port}\n`);
