import { expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { routes } from "../../examples/servers/greenhouse.ts";
import { createGateway, type GatewayOptions } from "../src/index.ts";
import { createMcp } from "../src/mcp/index.ts";

const page = { open: true, handle: () => ({ httpStatus: 200, body: "" }) } as const;
const service = `/${GreenhouseService.typeName}`;

function listRoutes(options: Partial<GatewayOptions>): string[] {
  const gateway = createGateway({ routes, ...options });
  return gateway.routes.map(({ httpMethods, path }) => `${httpMethods.join(",")} ${path}`);
}

// oxfmt-ignore
const ofGreenhouse = [
  `GET,POST ${service}/GetReading`, `POST ${service}/WaterBed`, `POST ${service}/WatchReadings`,
  `POST ${service}/RecordReadings`, `POST ${service}/ControlClimate`, "GET,HEAD /sensors/{sensor}/reading",
  "POST /beds/{bed}:water",
];

test("`routes` of a gateway lists the paths of RPCs and the templates of HTTP rules", () =>
  expect(listRoutes({}).toSorted()).toEqual(ofGreenhouse.toSorted()));

test.each<[name: string, options: Partial<GatewayOptions>, added: string[]]>(
  // oxfmt-ignore
  [
    ["endpoints with their methods",
      { endpoints: [{ ...page, path: "/page" }, { ...page, path: "/hook", httpMethods: ["POST"] }] },
      ["GET,HEAD /page", "POST /hook"]],
    ["the path of MCP", { mcp: createMcp({ path: "/agents", tools: [`${GreenhouseService.typeName}.*`] }) },
      ["POST /agents"]],
    ["an HTTP rule instead of the endpoint that it replaces",
      { endpoints: [{ ...page, path: "/page", yieldsToRules: true }],
        rest: { rules: [
          { selector: `${GreenhouseService.typeName}.WaterBed`, pattern: { case: "get", value: "/page" } },
        ] } }, ["GET,HEAD /page"]],
  ],
)("`routes` of a gateway lists %s", (_name, options, added) => {
  expect(listRoutes(options).filter((route) => !ofGreenhouse.includes(route))).toEqual(added);
});

test("`routes` of a gateway lists paths with the prefix, except endpoints at the root", () => {
  const endpoints = [
    { ...page, path: "/page" },
    { ...page, path: "/.well-known/page", atRoot: true },
  ];
  const mcp = createMcp({ tools: [`${GreenhouseService.typeName}.*`] });
  const found = listRoutes({ requestPathPrefix: "/api", endpoints, mcp }).map((route) => route.split(" ")[1]);
  expect(found).toContain(`/api${service}/WaterBed`);
  expect(found.filter((path) => !path?.startsWith("/api/"))).toEqual(["/.well-known/page"]);
});

test("`routes` of a gateway lists OPTIONS if the gateway responds to CORS preflights", () => {
  const found = listRoutes({ cors: { origins: "*" } });
  expect(found).toContain("GET,HEAD,OPTIONS /sensors/{sensor}/reading");
  expect(found.filter((route) => !route.includes("OPTIONS"))).toEqual([]);
});
