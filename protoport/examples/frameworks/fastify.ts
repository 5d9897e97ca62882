// The greenhouse in a Fastify application: npx node protoport/examples/frameworks/fastify.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import cors from "@fastify/cors";
import helmet from "@fastify/helmet";
import fastify from "fastify";
import { fastifyConnectPlugin } from "@protoport/frameworks/fastify";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const app = fastify();

app.register(helmet);
app.register(cors, { origin: "https://shop.example" });
app.register(fastifyConnectPlugin, { routes });
app.get("/", (_request, reply) => reply.type("text/html").send("<h1>Greenhouse</h1>\n"));
app.post("/echo", (request, reply) => reply.send(request.body));

await app.ready();
announce(app.server);
