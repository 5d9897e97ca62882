import { fileURLToPath } from "node:url";
import { descriptorSetOf } from "../../testing/src/gateway/descriptor-set.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { startOnLoadCore } from "../server-process.ts";
import { importEntry } from "./package-code.ts";
import { serve } from "./serve.ts";

// The proxy in front of the library on the load's core.
const { createProxy } = await importEntry<typeof import("../../proxy/src/create-proxy.ts")>(
  "protoport/proxy/src/create-proxy.ts",
);

const { port } = await startOnLoadCore(fileURLToPath(new URL("library.ts", import.meta.url)));
const upstream = `http://127.0.0.1:${String(port)}`;
const proxy = await createProxy({ upstreams: [{ upstream, descriptors: descriptorSetOf(LibraryService.file) }] });
await serve(() => proxy.listen({ host: "127.0.0.1", port: 0 }));
