"""Calls an agent with the A2A client for Python, and prints the results as JSON: client.py URL HTTP+JSON|GRPC"""

import asyncio
import json
import sys
import uuid

import grpc
from a2a.client import ClientConfig, create_client
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError


def message(text, **fields):
    parts = [a2a.Part(text=text)] if text else []
    return a2a.Message(message_id=str(uuid.uuid4()), role=a2a.ROLE_USER, parts=parts, **fields)


def summary(item):
    kind = item.WhichOneof("payload")
    return [kind, *describe(getattr(item, kind))]


def describe(value):
    if isinstance(value, a2a.Message):
        return [part.text for part in value.parts]
    if isinstance(value, a2a.TaskArtifactUpdateEvent):
        return [part.text for part in value.artifact.parts]
    texts = [part.text for part in value.status.message.parts]
    artifacts = [part.text for artifact in getattr(value, "artifacts", []) for part in artifact.parts]
    return [a2a.TaskState.Name(value.status.state), *artifacts, *texts]


async def outcome(awaitable):
    try:
        return await awaitable
    except A2AError as error:
        return [type(error).__name__, error.message]


async def collect(items):
    return [item async for item in items]


async def main(url, binding):
    def config(streaming):
        return ClientConfig(
            streaming=streaming,
            supported_protocol_bindings=[binding],
            grpc_channel_factory=grpc.aio.insecure_channel,
        )

    unary = await create_client(url, config(False))
    streams = await create_client(url, config(True))

    def send(text, at_once=False, **fields):
        configuration = a2a.SendMessageConfiguration(return_immediately=at_once)
        return a2a.SendMessageRequest(message=message(text, **fields), configuration=configuration)

    async def one(request):
        return (await collect(unary.send_message(request)))[0]

    async def summaries(items):
        return [summary(item) for item in await collect(items)]

    results = {}
    results["reply"] = summary(await one(send("hello")))
    task = (await one(send("water 2"))).task
    results["task"] = describe(task)
    results["stream"] = await summaries(streams.send_message(send("water 2")))
    results["stream of a reply"] = await summaries(streams.send_message(send("hello")))
    asking = (await one(send("water"))).task
    results["question"] = describe(asking)
    results["continued task"] = describe((await one(send("1", task_id=asking.id))).task)
    got = await unary.get_task(a2a.GetTaskRequest(id=task.id, history_length=0))
    results["get"] = [got.id == task.id, len(got.history), *describe(got)]
    context = str(uuid.uuid4())
    for text in ("water", "water"):
        await one(send(text, context_id=context))
    page = await unary.list_tasks(a2a.ListTasksRequest(context_id=context, page_size=1))
    rest = await unary.list_tasks(
        a2a.ListTasksRequest(context_id=context, page_size=1, page_token=page.next_page_token)
    )
    both = {listed.id for listed in [*page.tasks, *rest.tasks]}
    results["list"] = [len(both), page.total_size, page.next_page_token != "", rest.next_page_token]
    slow = (await one(send("water 100", at_once=True))).task
    results["cancel"] = describe(await unary.cancel_task(a2a.CancelTaskRequest(id=slow.id)))[0]
    results["cancel again"] = await outcome(unary.cancel_task(a2a.CancelTaskRequest(id=task.id)))
    followed = (await one(send("water 2", at_once=True))).task
    followed_by = await summaries(streams.subscribe(a2a.SubscribeToTaskRequest(id=followed.id)))
    results["subscribe"] = [followed_by[0][0], followed_by[-1]]
    results["subscribe afterwards"] = await outcome(
        collect(streams.subscribe(a2a.SubscribeToTaskRequest(id=followed.id)))
    )
    results["get unknown"] = await outcome(unary.get_task(a2a.GetTaskRequest(id="none")))
    results["invalid message"] = await outcome(one(send("")))
    results["invalid stream"] = await outcome(collect(streams.send_message(send(""))))
    results["unsupported content"] = await outcome(one(with_file(send)))
    webhook = a2a.GetTaskPushNotificationConfigRequest(task_id=task.id, id="none")
    results["webhook"] = await outcome(unary.get_task_push_notification_config(webhook))
    await unary.close()
    await streams.close()
    return results


def with_file(send):
    request = send("hello")
    request.message.parts.add(url="https://example.com/photo", media_type="image/png")
    return request


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
