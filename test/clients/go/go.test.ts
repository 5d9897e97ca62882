import { describe } from "vitest";
import { describeClient } from "../../support/clients/describe-client.ts";
import { describeDocumented } from "../../support/clients/documented-client.ts";
import { buildGoClient, goClients } from "../../support/clients/go-clients.ts";
import { hasProgram } from "../../support/process/tools-folder.ts";

describe.runIf(hasProgram("go"))("Go", () => {
  for (const name of goClients) describeClient({ name, build: () => buildGoClient(name) });
  describeDocumented({ language: "go", build: () => buildGoClient("documented") });
});
