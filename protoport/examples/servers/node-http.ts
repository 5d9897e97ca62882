// The greenhouse in a node:http server that also has its own pages: npx node protoport/examples/servers/node-http.ts 8080
//   curl http://127.0.0.1:8080/api/sensors/palm/reading
import { createServer } from "node:http";
import { createGateway } from "@protoport/gateway";
import { announce } from "./announce.ts";
import { routes } from "./greenhouse.ts";

const gateway = createGateway({ routes, requestPathPrefix: "/api" });

announce(
  createServer((request, response) => {
    // The application handles requests that the gateway does not serve.
    gateway.handler(request, response, () => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end("<h1>Greenhouse</h1>\n");
    });
  }),
);
