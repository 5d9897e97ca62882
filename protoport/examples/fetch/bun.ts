// The greenhouse on Bun: bun protoport/examples/fetch/bun.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { gateway } from "./gateway.ts";

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.argv[2] ?? 8080),
  // By default Bun closes connections that are idle for ten seconds, including streams.
  idleTimeout: 60,
  fetch: (request, bun) => {
    const peer = bun.requestIP(request);
    return gateway.fetch(request, peer === null ? {} : { peer });
  },
});
console.log(`Listening on ${server.url.href}`);
