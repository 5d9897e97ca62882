import { openSync, writeSync } from "node:fs";
import type { ServiceImpl } from "@connectrpc/connect";
import { createTestGateway } from "../../../../testing/src/gateway/test-engine.ts";
import { KitchenSink } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// An upstream of the soak test: `node packages/proxy/test/suites/soak/server.ts PORT FILE`. It records each call in the
// file, so that records survive when the process is killed, and echoes the request.

const [port, path = ""] = process.argv.slice(2);
const file = openSync(path, "a");

const implementation: Partial<ServiceImpl<typeof KitchenSink>> = {
  create: (sink, { method }) => {
    writeSync(file, `${sink.fInt32}\n`);
    return { rpc: method.name, sink };
  },
};

const gateway = createTestGateway({ routes: (router) => router.service(KitchenSink, implementation) });
const address = await gateway.listen({ host: "127.0.0.1", port: Number(port) });
process.stdout.write(`${address.port}\n`);
