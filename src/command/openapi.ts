import { createPlantStoreOpenApi, defaultText, settings } from "../server/index.ts";
import { readFlag, readValue } from "@protoport/command-line";
import { publicUrl } from "@protoport/command-line/settings";
import { exitCode, type Command } from "./command.ts";

const { variable } = settings.publicUrl;

const defaultUrl = `http://${defaultText(settings.host)}:${defaultText(settings.port)}`;

/** The `openapi` command, which prints the OpenAPI description for the REST interface. */
export const openApiOfStoreCommand: Command = {
  name: "openapi",
  summary: "print the OpenAPI 3.1 description of the REST interface",
  flags: {
    "public-url": {
      value: "URL",
      about: `base URL for clients; default ${variable}, or ${defaultUrl}`,
    },
  },
  run: async (flags, _operands, terminal) => {
    const text = terminal.environment[variable] || defaultUrl;
    const { href } = readFlag(flags, "public-url", publicUrl) ?? readValue(publicUrl, variable, text);
    // Removes trailing slashes, because the paths start with a slash.
    terminal.out(JSON.stringify(createPlantStoreOpenApi(href.replace(/\/+$/, "")), undefined, 2));
    return exitCode.ok;
  },
};
