import { writeFileSync } from "node:fs";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { descriptorSetOf, startReflectingServer } from "@protoport/testing/proxy";
import { notesWith } from "../../../../../../testing/src/gateway/notes.ts";
import { startSignup, validAccount } from "../../../../../../testing/src/gateway/signup.ts";
import { SignupService } from "../../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { createTempFolder } from "../../../../../../testing/src/process/temp-folder.ts";
import { compare, type Effects, statusOf, waterBed } from "./comparison.ts";

const invalidAccount: RequestInit = {
  method: "POST",
  body: JSON.stringify({ ...validAccount, age: 3 }),
  headers: { "content-type": "application/json" },
};
const register = `/${SignupService.typeName}/Register`;

/** Compares the settings that need protovalidate. */
export const validationEffects: Effects = {
  validate: async () => {
    await using server = await startSignup(undefined);
    using folder = createTempFolder();
    const descriptors = folder.file("signup.binpb");
    writeFileSync(descriptors, descriptorSetOf(SignupService.file));
    const upstream = { addresses: [`http://127.0.0.1:${server.address.port}`], descriptors };
    return await compare({ upstream }, { upstream, validate: true }, statusOf(register, invalidAccount));
  },
  validateReflected: async () => {
    const rule = { type: { case: "string", value: { minLen: 5n } } } as const;
    await using server = await startReflectingServer([notesWith(rule), file_buf_validate_validate.proto]);
    const upstream = { addresses: [`http://${server.address}`] };
    const note = { ...waterBed, body: JSON.stringify({ text0: "long" }) };
    return await compare({ upstream }, { upstream, validateReflected: true }, statusOf("/notes.Notes/Add", note));
  },
};
