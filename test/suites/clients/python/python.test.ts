import { delimiter, join } from "node:path";
import { describe } from "vitest";
import { describeClient } from "../../../support/clients/describe-client.ts";
import { describeExample } from "../../../support/clients/example-client.ts";
import { buildPythonClient } from "../../../support/clients/built-clients.ts";
import { hasProgram, openPython, projectFolder } from "@protoport/testing/process";

const clients = [
  { name: "grpcio", program: "grpcio_client.py" },
  { name: "connectrpc", program: "connect_client.py" },
];

describe.runIf(hasProgram("python3"))("Python", () => {
  for (const { name, program } of clients) describeClient({ name, build: () => buildPythonClient(program) });
  describeExample({
    language: "python",
    program: "main.py",
    environment: async (authorityFile) => {
      const programs = await openPython(join(projectFolder, "examples/clients/python/requirements.txt"));
      return { PATH: [programs, process.env["PATH"]].join(delimiter), GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: authorityFile };
    },
  });
});
