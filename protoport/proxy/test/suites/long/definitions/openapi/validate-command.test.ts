import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createOpenApi } from "../../../../../../gateway/src/openapi/index.ts";
import { openValidation } from "../../../../../../gateway/src/validation/index.ts";
import { descriptorSetOf, runProxyCommand } from "@protoport/testing/proxy";
import { file_signup_v1_signup, SignupService } from "../../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { createTempFolder } from "@protoport/testing/process";

test("openapi writes the field rules that --validate selects", async () => {
  using folder = createTempFolder();
  const set = folder.file("signup.binpb");
  writeFileSync(set, descriptorSetOf(file_signup_v1_signup));
  const signup = { title: SignupService.typeName, version: "1.0.0" };
  const document = createOpenApi([SignupService], { info: signup, validation: await openValidation() });
  expect((await runProxyCommand("openapi", set, "--validate")).printed).toBe(JSON.stringify(document));
  expect((await runProxyCommand("openapi", set)).printed).toBe(
    JSON.stringify(createOpenApi([SignupService], { info: signup })),
  );
});
