import { formService } from "./form-service.ts";
import { importEntry, ownHttp } from "./package-code.ts";
import { serve } from "./serve.ts";

// The gateway with the form, and with validation unless FORM_RULES is "none".
const { createGateway } = await importEntry<typeof import("../../gateway/src/index.ts")>(
  "protoport/gateway/src/index.ts",
);
const { openValidation } = await importEntry<typeof import("../../gateway/src/validation/index.ts")>(
  "protoport/gateway/src/validation/index.ts",
);

const rules = process.env["FORM_RULES"] ?? "none";
const validation = rules === "none" ? {} : { validation: await openValidation() };
const handlers: object = { save: () => ({}) };
const gateway = createGateway({
  ...(await ownHttp()),
  ...validation,
  routes: (router) => router.service(formService(rules), handlers),
});
await serve(() => gateway.listen({ host: "127.0.0.1", port: 0 }));
