import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, ProxyCommand } from "@protoport/testing/proxy";
import { retainedBytes } from "../../../../../testing/src/http/retained-bytes.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";

/** Number of reloads before the measurement. V8 compiles code during the first 700 reloads, which takes 2 to 3 MB. */
const warmUpReloads = 700;

/** Number of measured reloads. */
const reloads = 300;

/** How many bytes the measured reloads may add. If they kept their descriptors and routes, they would add over 30 MB. */
const maxAddedBytes = 3_000_000;

test("the heap does not grow during 300 reloads after a warm-up", async () => {
  using folder = createTempFolder();
  const file = folder.file("proxy.yaml");
  writeFileSync(folder.file("set.binpb"), descriptorSetOf(GreenhouseService.file));
  writeFileSync(folder.file("token"), "token-of-the-reload-test");
  const configure = (reload: number): void =>
    writeFileSync(
      file,
      `listen: { host: 127.0.0.1, port: 0 }
drain: { delayMs: 0 }
docs: true
mcp: { tools: ["*"] }
accessLog: ${reload % 2 === 0 ? "errors" : "off"}
authentication: { tokens: [{ file: ${folder.file("token")} }], realm: realm-${reload % 3} }
rateLimit: { perPrincipal: 10 }
upstreams:
- { addresses: ["http://127.0.0.1:1"], descriptors: ${folder.file("set.binpb")}, connections: ${1 + (reload % 4)} }
`,
    );
  configure(0);
  await using proxy = new ProxyCommand(["--config", file]);
  await proxy.serving;
  let bytesBefore = 0;
  for (let reload = 1; reload <= warmUpReloads + reloads; reload++) {
    configure(reload);
    const linesBefore = proxy.lines.length;
    proxy.hangUp();
    expect(await proxy.waitForLine(/^configuration reloaded$/, linesBefore)).toBeDefined();
    if (reload === warmUpReloads) bytesBefore = await retainedBytes();
  }
  expect((await retainedBytes()) - bytesBefore).toBeLessThan(maxAddedBytes);
}, 120_000);
