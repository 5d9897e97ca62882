import type { Flag } from "@protoport/command-line";
import { operationIdsFlag } from "../operation-ids-flag.ts";
import { profileNames, switchNames } from "../rest-switches.ts";
import { visibilityFlag } from "../visibility-flag.ts";

/** The flags for an OpenAPI document, which the command and the plugin share. */
export const documentFlags: Readonly<Record<string, Flag>> = {
  format: { value: "FORMAT", about: "json or yaml; default: the extension of --out, otherwise json" },
  version: { value: "VERSION", about: "the version of OpenAPI, 3.1 or 3.2; default 3.1" },
  base: {
    value: "FILE",
    about:
      "info, servers, securitySchemes and security of the document, in YAML or JSON; default those of the definition",
  },
  title: { value: "TEXT", about: "the title in info; default the names of the services" },
  "api-version": { value: "TEXT", about: "the version in info; default 1.0.0" },
  server: { value: "URL", about: "where the interface is served; default /", multiple: true },
  "operation-ids": operationIdsFlag,
  service: { value: "NAME", about: "describes only this service; a NAME that ends with * is a prefix", multiple: true },
  rest: {
    value: "OPTION",
    about: `the REST options of the server: ${switchNames.join(", ")}`,
    multiple: true,
  },
  "rest-profile": {
    value: "NAME",
    about: `the profile of the server: ${profileNames.join(", ")}; default strict`,
  },
  omit: { value: "RPC", about: "excludes this RPC, written as package.Service.Method", multiple: true },
  rules: {
    value: "FILE",
    about: "HTTP rules that replace annotations: a service config in YAML or JSON",
    multiple: true,
  },
  mcp: { value: "RPC", about: "adds the names of the tools that --mcp of the server selects", multiple: true },
  visibility: visibilityFlag,
  validate: { about: "describes the buf.validate rules of requests, which --validate of the server checks" },
};
