#!/usr/bin/env python3
"""Runs the official clients' own suites against the engine.

  run.py BINARY [--suite NAME]... [--write-docs]

Each suite is fetched through its package registry into the cache, runs against an engine of its own with an empty data folder, and is
compared with expected.json: a test that fails or is skipped must stand there with its reason, and what stands there must not pass. With
--write-docs the table in docs/compatibility.md is written from what ran.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tablemount" / "clients"
PYTHON_VERSION = "2.50.2"
GO_VERSION = "v1.58.0"
CBT_VERSION = "v1.10.1"
NODE_VERSION = "7.2.0"
# One test's time, and a suite's.
TEST_SECONDS = 120
SUITE_SECONDS = 900


class Failed(Exception):
    """A suite that could not be run to its end, or an engine that did not live through it."""


def run(*command, **options):
    """Runs a command that must succeed; says what it printed if it does not."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Engine:
    """An engine on a data folder of its own, until the end of the block. It must end as it was told to, not before."""

    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tablemount-clients-")
        self.http, self.grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
        data = pathlib.Path(self.folder.name) / "data"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        self.process = subprocess.Popen(
            [self.binary, "engine", "--data", data, "--http", self.http, "--grpc", self.grpc, "--anonymous", "read-write"],
            stdout=self.log, stderr=self.log,
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://{self.http}/readyz", timeout=1).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.process.kill()
                    raise Failed(f"the engine did not start:\n{self.said()}")
                time.sleep(0.05)

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def environment(self):
        return dict(os.environ, BIGTABLE_EMULATOR_HOST=self.grpc, GOOGLE_CLOUD_PROJECT="p")

    def __exit__(self, *_):
        died = self.process.poll()
        if died is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                code = self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                code = "killed, since it did not end"
        said = self.said()
        self.log.close()
        self.folder.cleanup()
        if died is not None:
            raise Failed(f"the engine ended while it was used, with code {died}:\n{said}")
        if code != 0 or "panicked" in said:
            raise Failed(f"the engine ended with {code}:\n{said}")


def prepared(name, prepare):
    """A folder in the cache that `prepare` fills once."""
    folder = CACHE / name
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = pathlib.Path(tempfile.mkdtemp(prefix=f".{name}-", dir=CACHE))
        try:
            prepare(partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return folder


def python_client():
    """The Python client's sources with its tests, and a virtual environment that is made in its final place."""
    def fetch(folder):
        package = f"google-cloud-bigtable=={PYTHON_VERSION}"
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, package)
        archive = next(folder.glob("*.tar.gz"))
        run("tar", "xzf", archive, "-C", folder, "--strip-components=1")

    sources = prepared(f"python-{PYTHON_VERSION}", fetch)
    environment = CACHE / f"python-{PYTHON_VERSION}-env"
    if not (environment / "complete").exists():
        shutil.rmtree(environment, ignore_errors=True)
        run(sys.executable, "-m", "venv", environment)
        requirements = ["-r", HERE / "python-requirements.txt", f"google-cloud-bigtable=={PYTHON_VERSION}"]
        run(environment / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *requirements)
        (environment / "complete").touch()
    return sources, environment / "bin" / "python"


def pytest(binary, tests, **variables):
    sources, python = python_client()
    with Engine(binary) as engine, tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", tests]
        environment = dict(engine.environment(), PYTHONDONTWRITEBYTECODE="1", **variables)
        done = subprocess.run(command, cwd=sources, env=environment, timeout=SUITE_SECONDS, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not report.exists():
            raise Failed(f"pytest wrote no report:\n{done.stdout}")
        return {name: (outcome, why) for name, outcome, why in outcomes(report)}


def outcomes(report):
    for case in ET.parse(report).getroot().iter("testcase"):
        kinds = {child.tag: child for child in case}
        for kind, outcome in (("error", "failed"), ("failure", "failed"), ("skipped", "skipped")):
            if kind in kinds:
                yield case.get("name"), outcome, (kinds[kind].get("message") or "")[:300]
                break
        else:
            yield case.get("name"), "passed", ""


def python_data(binary):
    return pytest(binary, "tests/system/data/test_system_autogen.py", BIGTABLE_TEST_INSTANCE="i")


def python_v2(binary):
    return pytest(binary, "tests/system/v2_client")


def go_tests():
    def build(folder):
        module = folder / "module"
        module.mkdir()
        run("go", "mod", "init", "clients", cwd=module)
        run("go", "get", "-t", f"cloud.google.com/go/bigtable@{GO_VERSION}", cwd=module)
        run("go", "test", "-c", "-o", folder / "bigtable.test", "cloud.google.com/go/bigtable", cwd=module)

    return prepared(f"go-{GO_VERSION}", build) / "bigtable.test"


def go_integration(binary):
    program = go_tests()
    listed = run(program, "-test.list", "Integration").split()
    names = [name for name in listed if name.startswith("Test")]
    names = [name for name in names if not any(part in name for part in ("SessionVRpc", "ExportBuiltInMetrics", "Noop"))]
    results = {}
    with Engine(binary) as engine, tempfile.TemporaryDirectory() as scratch:
        for name in names:
            command = [program, "-test.run", f"^{name}$", "-test.v", "-it.use-prod", "-it.project", "p", "-it.instance", "i",
                       "-it.cluster", "c", "-it.table", "t", "-it.run-create-instance-tests=false"]
            try:
                done = subprocess.run(command, cwd=scratch, env=engine.environment(), text=True, timeout=TEST_SECONDS,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                said = done.stdout
            except subprocess.TimeoutExpired as late:
                said = f"no end within {TEST_SECONDS} s: {late.output!r}"
            lines = said.splitlines()
            why = " ".join(line.strip() for line in lines if ".go:" in line)[:300]
            for outcome, mark in (("failed", "--- FAIL"), ("skipped", "--- SKIP"), ("passed", "--- PASS")):
                if any(line.startswith(f"{mark}: {name} ") for line in lines):
                    results[name] = (outcome, why if outcome != "passed" else "")
                    break
            else:
                results[name] = ("failed", said[-300:])
    return results


def cbt(binary):
    def install(folder):
        run("go", "install", f"cloud.google.com/go/bigtable/cmd/cbt@{CBT_VERSION}", env=dict(os.environ, GOBIN=str(folder)))

    program = prepared(f"cbt-{CBT_VERSION}", install) / "cbt"
    results = {}
    with Engine(binary) as engine:
        for number, line in enumerate((HERE / "cbt.txt").read_text().split("$ ")[1:]):
            command, _, expected = line.partition("\n")
            done = subprocess.run([program, "-project", "p", "-instance", "i", *command.split()], env=engine.environment(), text=True,
                                  timeout=TEST_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            lines = [text.rstrip() for text in done.stdout.splitlines() if "-creds flag unset" not in text]
            # The time of a cell or a message changes from run to run.
            said = [text.partition(" @ ")[0].rstrip() if " @ " in text else text for text in lines]
            good = said == [text.rstrip() for text in expected.splitlines()]
            results[f"{number + 1}: cbt {command}"] = ("passed", "") if good else ("failed", "\n".join(said))
    return results


def lines_of(said):
    """Results that a program printed as lines `ok NAME` and `failed NAME: why`."""
    results = {}
    for line in said.splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "ok":
            results[rest] = ("passed", "")
        elif mark == "failed":
            name, _, why = rest.partition(": ")
            results[name] = ("failed", why)
    if not results:
        raise Failed(f"the suite said nothing of tests:\n{said}")
    return results


def node(binary):
    def install(folder):
        shutil.copy(HERE / "node" / "package.json", folder)
        run("npm", "install", "--no-audit", "--no-fund", "--silent", cwd=folder)

    folder = prepared(f"node-{NODE_VERSION}", install)
    shutil.copy(HERE / "node" / "flow.mjs", folder)
    with Engine(binary) as engine:
        done = subprocess.run(["node", "flow.mjs"], cwd=folder, env=engine.environment(), text=True, timeout=TEST_SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return lines_of(done.stdout)


SUITES = {
    "python-data": (python_data, f"Python `google-cloud-bigtable` {PYTHON_VERSION}, `tests/system/data/test_system_autogen.py`"),
    "python-v2": (python_v2, f"Python `google-cloud-bigtable` {PYTHON_VERSION}, `tests/system/v2_client`"),
    "go": (go_integration, f"Go `cloud.google.com/go/bigtable` {GO_VERSION}, integration tests"),
    "node": (node, f"Node `@google-cloud/bigtable` {NODE_VERSION}, the flows of `tests/clients/node/flow.mjs`"),
    "cbt": (cbt, f"`cbt` {CBT_VERSION}, the session of `tests/clients/cbt.txt`"),
}


def counts(results):
    """How many passed, failed, were skipped."""
    return [sum(outcome == kind for outcome, _ in results.values()) for kind in ("passed", "failed", "skipped")]


def judge(suite, results, expected):
    """What differs from what is expected."""
    wrong = []
    for name, (outcome, why) in sorted(results.items()):
        known = expected.get(name)
        if outcome != "passed" and known is None:
            wrong.append(f"{suite}: {name} {outcome}: {why}")
        elif outcome == "passed" and known is not None:
            wrong.append(f"{suite}: {name} passed; take it out of expected.json")
        elif known is not None and known["outcome"] != outcome:
            wrong.append(f"{suite}: {name} {outcome}, expected {known['outcome']}: {why}")
    wrong += [f"{suite}: {name} did not run" for name in sorted(set(expected) - set(results))]
    return wrong


def table(all_results, expected):
    lines = ["| suite | passed | failed | skipped |", "| --- | ---: | ---: | ---: |"]
    for suite, results in all_results.items():
        lines.append(f"| {SUITES[suite][1]} | {' | '.join(map(str, counts(results)))} |")
    lines += ["", "| not passed | | reason |", "| --- | --- | --- |"]
    for suite in all_results:
        for name, known in sorted(expected.get(suite, {}).items()):
            shown = name.replace("|", "\\|")
            lines.append(f"| `{shown}` | {suite}, {known['outcome']} | {known['reason']} |")
    return "\n".join(lines) + "\n"


def write_docs(text):
    page = ROOT / "docs" / "compatibility.md"
    begin, end = "<!-- suites: written by make test-clients -->\n", "<!-- end of suites -->\n"
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    page.write_text(before + begin + text + end + after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    expected = json.loads((HERE / "expected.json").read_text())
    binary, suites = arguments.binary.resolve(), arguments.suite or list(SUITES)

    def timed(suite):
        started = time.monotonic()
        return SUITES[suite][0](binary), time.monotonic() - started

    all_results, wrong = {}, []
    # They wait for their own retries and pauses most of the time, so they run beside each other.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for suite, running in [(suite, pool.submit(timed, suite)) for suite in suites]:
            try:
                results, seconds = running.result()
            except (Failed, subprocess.TimeoutExpired) as failed:
                wrong.append(f"{suite}: {failed}")
                continue
            passed, failed, skipped = counts(results)
            print(f"{suite}: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0f} s", flush=True)
            all_results[suite] = results
            wrong += judge(suite, results, expected.get(suite, {}))
    if arguments.write_docs:
        write_docs(table(all_results, expected))
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


main()
