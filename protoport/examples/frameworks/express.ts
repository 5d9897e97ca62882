// The greenhouse in an Express application: npx node protoport/examples/frameworks/express.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { createServer } from "node:http";
import cors from "cors";
import express from "express";
import helmet from "helmet";
import { expressConnectMiddleware } from "@protoport/frameworks/express";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const app = express();

app.use(helmet(), cors({ origin: "https://shop.example" }));
// Before any body parser, because the gateway reads bodies itself. It passes on other requests unchanged.
app.use(expressConnectMiddleware({ routes }));
app.use(express.json());
app.get("/", (_request, response) => void response.send("<h1>Greenhouse</h1>\n"));
app.post("/echo", (request, response) => void response.json(request.body));

announce(createServer(app));
