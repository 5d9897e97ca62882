import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { descriptorSetOf, OrderService, ProxyCommand, serviceWithRoutes, startGreenhouse
} from "@protoport/testing/proxy";
import { createTempFolder } from "@protoport/testing/process";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const greenhouse = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
const { file: shopFile } = serviceWithRoutes("shop.v1.Shop", { Get: ["GET /shop"] });
const shop = folder.write("shop.binpb", descriptorSetOf(shopFile));

/** Writes a configuration with an upstream at an address, and one that does not respond. */
function configure(address: string, rest: object): string {
  const upstreams = [
    { addresses: [address], descriptors: greenhouse, services: ["greenhouse.*"] },
    { addresses: ["http://127.0.0.1:1"], descriptors: shop, services: ["shop.*"] },
  ];
  const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams, rest };
  return folder.write("proxy.yaml", JSON.stringify(settings));
}

const quoted = 'no "sensor"\n{code}';

function errorWith(code: string, status: number, text: unknown = expect.any(String)): object {
  return { success: false, error: { code, status, text } };
}

test("a proxy sends rest.errorBody for its own errors and those of upstreams, until a reload changes it", async () => {
  await using upstream = await startGreenhouse({
    getReading: () => {
      const detail = { desc: OrderService.method.deleteOrder.input, value: { id: 7n } };
      throw new ConnectError(quoted, Code.FailedPrecondition, undefined, [detail]);
    },
  });
  const address = `http://127.0.0.1:${upstream.address.port}`;
  const errorBody = { success: false, error: { code: "{code}", status: "{httpStatus}", text: "{message}" } };
  await using command = new ProxyCommand(["--config", configure(address, { errorBody })]);
  const baseUrl = await command.serving;
  const bodyOf = async (path: string, init?: RequestInit): Promise<unknown> => {
    const response = await fetch(`${baseUrl}${path}`, init);
    expect(response.headers.get("content-type")).toBe("application/json");
    return response.json();
  };
  expect(await bodyOf("/sensors/s/reading")).toEqual(errorWith("FAILED_PRECONDITION", 400, quoted));
  expect(await bodyOf("/shop")).toEqual(errorWith("UNAVAILABLE", 503));
  expect(await bodyOf("/nothing")).toEqual(errorWith("NOT_FOUND", 404));
  const headers = { "content-type": "application/json" };
  const malformed = await bodyOf("/beds/7:water", { method: "POST", headers, body: "{" });
  expect(malformed).toEqual(errorWith("INVALID_ARGUMENT", 400));
  configure(address, { errorBody: { number: "{number}", details: "{details}" } });
  command.hangUp();
  expect(await command.waitForLine(/^configuration reloaded$/)).toBeDefined();
  const detail = { "@type": "type.googleapis.com/orders.v1.DeleteOrderRequest", value: expect.any(String) };
  expect(await bodyOf("/sensors/s/reading")).toEqual({ number: 9, details: [detail] });
});

test.each(
  // oxfmt-ignore
  [
    ["an unknown placeholder", 'rest:\n  errorBody:\n    error:\n      text: "{msg}"\n',
      "refused.yaml:4:13: rest.errorBody.error.text must be {code}, {number}"],
    ["a list", "rest:\n  errorBody: [a]\n", "refused.yaml:2:14: rest.errorBody must be an object"],
    ["an infinite number", "rest:\n  errorBody: {e: [.inf]}\n", "refused.yaml:2:19: rest.errorBody.e[0] must be JSON"],
    ["rest.errors in addition", "rest:\n  errors: google\n  errorBody: {error: '{message}'}\n",
      "refused.yaml:3:14: rest.errorBody must not be combined with rest.errors; use one of them"],
  ],
)("a proxy refuses rest.errorBody with %s at its place", async (_name, yaml, problem) => {
  const upstreams = `upstreams:\n- addresses: ["http://127.0.0.1:1"]\n  descriptors: ${greenhouse}\n`;
  const command = new ProxyCommand(["--config", folder.write("refused.yaml", `${yaml}${upstreams}`), "--check"]);
  expect(await command.done).toBe(2);
  expect(command.errors.join("\n")).toContain(problem);
});
