// The greenhouse on a port of the gateway, which detects HTTP/1.1 and HTTP/2, enforces limits, and drains without losing
// calls: npx node protoport/examples/servers/listening.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { createGateway } from "@protoport/gateway";
import { routes } from "./greenhouse.ts";

const gateway = createGateway({ routes, cors: { origins: "*" }, limits: { defaultTimeoutMs: 10_000 } });
const { address, port } = await gateway.listen({ port: Number(process.argv[2] ?? 8080) });
process.once("SIGTERM", () => void gateway.drain(10_000));
console.log(`http://${address}:${String(port)}`);
