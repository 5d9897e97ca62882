import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { type ProxyProcess, startProxyProcess } from "../../../../../testing/src/gateway/proxy-process.ts";
import { startSignup, validAccount } from "../../../../../testing/src/gateway/signup.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";

const folder = createTempFolder();
const descriptors = folder.file("signup.binpb");
let upstream: Awaited<ReturnType<typeof startSignup>>;
let proxy: ProxyProcess;
beforeAll(async () => {
  writeFileSync(descriptors, descriptorSetOf(SignupService.file));
  upstream = await startSignup(undefined);
  const address = `http://127.0.0.1:${upstream.address.port}`;
  proxy = await startProxyProcess(["--upstream", address, "--descriptors", descriptors, "--validate", "--port", "0"]);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function register(account: object): Promise<readonly [number, unknown]> {
  const response = await fetch(`${proxy.baseUrl}/accounts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(account),
  });
  return [response.status, await response.json()];
}

test("--validate rejects requests that violate validation rules", async () => {
  await expect(register(validAccount)).resolves.toEqual([200, { count: 1 }]);
  await expect(register({ ...validAccount, name: "A" })).resolves.toMatchObject([
    400,
    { message: "name: must be at least 2 characters" },
  ]);
});

test("OpenAPI includes the validation rules with --validate", async () => {
  const response = await fetch(`${proxy.baseUrl}/openapi.json`);
  await expect(response.json()).resolves.toMatchObject({
    components: { schemas: { Account: { properties: { name: { minLength: 2 } } } } },
  });
});
