// Streams for pages and for curl: npx node protoport/examples/streams/main.ts 8080
//   curl -N "http://127.0.0.1:8080/sensors/palm/readings?count=3"
//   curl -T protoport/examples/streams/photos.ts http://127.0.0.1:8080/photos/palm
//   curl -r 3-8 http://127.0.0.1:8080/photos/palm
// http://127.0.0.1:8080/readings.html shows readings as they arrive, http://127.0.0.1:8080/photo.html downloads a photo
// with a progress bar. Any file can be a photo. They are stored in a temporary folder until the program stops.
import { createGateway, type Endpoint } from "@protoport/gateway";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { routes } from "../servers/greenhouse.ts";
import { photosIn } from "./photos.ts";

const folder = await mkdtemp(join(tmpdir(), "photos-"));

async function pageOf(name: string): Promise<Endpoint> {
  const body = await readFile(new URL(name, import.meta.url), "utf8");
  const header = { "content-type": "text/html; charset=utf-8" };
  return { path: `/${name}`, open: true, handle: () => ({ httpStatus: 200, header, body }) };
}

const selector = "greenhouse.v1.GreenhouseService.WatchReadings";
const gateway = createGateway({
  routes: (router) => {
    routes(router);
    photosIn(folder)(router);
  },
  rest: { rules: [{ selector, pattern: { case: "get", value: "/sensors/{sensor}/readings" } }] },
  endpoints: [await pageOf("readings.html"), await pageOf("photo.html")],
});

const { address, port } = await gateway.listen({ port: Number(process.argv[2] ?? 8080) });
console.log(`http://${address}:${String(port)}`);
process.once("SIGTERM", () => void stop());

async function stop(): Promise<void> {
  await gateway.drain(10_000);
  await rm(folder, { recursive: true });
}
