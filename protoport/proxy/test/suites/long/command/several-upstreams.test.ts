import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
// oxfmt-ignore
import { type ReflectedUpstream, runProxyCommand, serviceWithRoutes, startProxyProcess, startReflectedUpstream
} from "@protoport/testing/proxy";
import { projectFolder } from "@protoport/testing/process";
import { readSamples } from "../../../../../testing/src/telemetry/samples.ts";

const shelves = serviceWithRoutes("shelves.v1.Shelves", { Delete: ["DELETE /v1/shelves/{id}"] });
const orders = serviceWithRoutes("orders.v1.Orders", { Get: ["GET /v1/orders/{id}"] });
/** The second upstream's services once it is hostile. */
const hostile = serviceWithRoutes("orders.v1.Orders", {
  Get: ["GET /v1/orders/{id}"],
  Steal: ["DELETE /v1/shelves/7", "DELETE /v1/orders/{id}"],
});

async function start(...services: readonly DescService[]): Promise<ReflectedUpstream> {
  const upstream = await startReflectedUpstream(...services);
  onTestFinished(() => upstream.stop());
  return upstream;
}

/** Returns the arguments in the page's example command, with these addresses. */
function documentedArgs(first: string, second: string): readonly string[] {
  const page = readFileSync(join(projectFolder, "protoport/docs/how-to/proxy.md"), "utf8");
  const block = /```sh\nnpx @protoport\/proxy ([^`]+)```/.exec(page)?.[1] ?? "";
  const words = block.replaceAll("\\\n", " ").replaceAll("'", "").trim().split(/\s+/);
  return words.map((word) => word.replace("dns:shelves:50051", first).replace("dns:orders:50051", second));
}

test("the documented upstreams serve their services, and conflicts are reported", async () => {
  const [a, b] = [await start(shelves), await start(orders)];
  await using proxy = await startProxyProcess([...documentedArgs(a.address, b.address), "--port", "0"]);
  const conflicts = async (): Promise<readonly number[]> => {
    const samples = readSamples(await (await fetch(`${proxy.adminUrl}/metrics`)).text());
    return samples.filter(({ name }) => name === "gateway_descriptors_conflicts").map(({ value }) => value);
  };
  expect(await conflicts()).toEqual([0, 0]);
  const call = async (): Promise<readonly number[]> => [
    (await fetch(`${proxy.baseUrl}/v1/shelves/7`, { method: "DELETE" })).status,
    (await fetch(`${proxy.baseUrl}/v1/orders/7`)).status,
  ];
  expect(await call()).toEqual([200, 200]);
  b.offer(hostile, shelves);
  for (let reload = 0; reload < 2; reload++) {
    proxy.command.process.kill("SIGHUP");
    await expect.poll(conflicts).toEqual([0, 1]);
  }
  expect([await call(), a.calls.length, b.calls]).toEqual([[200, 200], 2, ["Get null", "Get null"]]);
  const document: unknown = await (await fetch(`${proxy.baseUrl}/openapi.json`)).json();
  expect(document).toMatchObject({ paths: { "/v1/shelves/{id}": {}, "/v1/orders/{id}": {} } });
  expect(document).not.toHaveProperty(["paths", "/v1/shelves/7"]);
  const logged = proxy.command.stderr().split("\n").slice(0, -1);
  const clash = `route DELETE /v1/shelves/7 of orders.v1.Orders.Steal belongs to ${a.authority}`;
  expect(logged.toSorted()).toEqual([
    expect.stringContaining(`cannot reload the descriptors: ${b.authority}: cannot use the descriptors: ${clash}; add`),
    `upstream ${b.address}: service shelves.v1.Shelves belongs to ${a.authority}`,
  ]);
});

const [one, two] = ["--upstream dns:a:1", "--upstream dns:b:2"].map((text) => text.split(" "));
const both = [...(one ?? []), ...(two ?? []), "--reflection"];

test.each(
  // oxfmt-ignore
  [
    ["no --service flag", [],
      ["upstreams[0].services is required because upstreams[1] uses reflection, too; add --service 'dns:a:1=PACKAGE.*'",
        "upstreams[1].services is required because upstreams[0] uses reflection, too; add --service 'dns:b:2=PACKAGE.*'"]],
    ["the same --service flag for both", ["--service", "a.*"],
      ["--service must not contain \"a.*\", which upstreams[0] has, too; use --service 'dns:b:2=a.*' for one of them"]],
  ],
)("two upstreams with reflection and %s are refused", async (_name, flags, want) => {
  const { exitCode, errors } = await runProxyCommand(...both, ...flags, "--check");
  expect([exitCode, errors.split("\n")]).toEqual([2, expect.arrayContaining(want)]);
  expect(errors).not.toContain("descriptors");
});
