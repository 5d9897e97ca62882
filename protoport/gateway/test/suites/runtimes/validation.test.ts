import { expect, test } from "vitest";
import { createTempFolder, exchangeHttp1, rpcRequest, startProgram, wireFormats } from "@protoport/testing";
import { validAccount } from "../../../../testing/src/gateway/signup.ts";
import { SignupService } from "../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { bundleForWeb, prepareWorkerd, resolveRuntime } from "./workerd.ts";

test("validation in workerd refuses only messages that violate a rule", async () => {
  using folder = createTempFolder();
  await bundleForWeb("protoport/testing/src/gateway/signup-worker.ts", folder.file("worker.mjs"));
  const command = resolveRuntime("@cloudflare/workerd-linux-64/bin/workerd");
  await using running = startProgram(command, prepareWorkerd(folder), folder.path);
  const [, port] = await running.find(/"port":(\d+)/);
  const address = { address: "127.0.0.1", port: Number(port) };
  const register = async (account: object): Promise<[number, string]> => {
    const body = Buffer.from(JSON.stringify(account));
    const request = rpcRequest(wireFormats["connect-json"], body, [], `/${SignupService.typeName}/Register`);
    const response = await exchangeHttp1(address, request);
    return [response.httpStatus, response.body.toString()];
  };
  expect(await register(validAccount)).toEqual([200, '{"count":1}']);
  expect(await register({ ...validAccount, email: "ada" })).toEqual([400, expect.stringContaining("email")]);
});
