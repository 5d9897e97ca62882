// The greenhouse on Deno: deno run --allow-net protoport/examples/fetch/deno.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { gateway } from "./gateway.ts";

Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.args[0] ?? 8080) }, (request, { remoteAddr }) =>
  gateway.fetch(request, { peer: { address: remoteAddr.hostname, port: remoteAddr.port } }),
);
