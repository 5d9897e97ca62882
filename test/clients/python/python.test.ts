import { describe } from "vitest";
import { describeClient } from "../../support/clients/describe-client.ts";
import { describeDocumented } from "../../support/clients/documented-client.ts";
import { buildPythonClient } from "../../support/clients/python-clients.ts";
import { hasProgram } from "../../support/process/tools-folder.ts";

const clients = [
  { name: "grpcio", program: "grpcio_client.py" },
  { name: "connectrpc", program: "connect_client.py" },
  { name: "openapi-python-client", program: "openapi_client.py" },
];

describe.runIf(hasProgram("python3"))("Python", () => {
  for (const { name, program } of clients) describeClient({ name, build: () => buildPythonClient(program) });
  describeDocumented({ language: "python", build: () => buildPythonClient("documented.py") });
});
