<?php
// SPDX-License-Identifier: BSD-2-Clause
// Runs functions of PHP in each way there is, up to a place that a tracer looks at, and writes down what debug_backtrace()
// says there: [function, file, line] from the innermost on. argv: FILE ROUNDS. It begins once a line came on stdin, and
// ends once another one did.

$record = fopen($argv[1], "a");

function place() {
    global $record;
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    posix_getppid();
    $view = [];
    for ($i = 1; $i <= count($trace); $i++) {
        // Each entry has where it was called: that is the line of the function before it.
        $name = $i == count($trace) || $trace[$i]["function"] == "include" ? "{main}" : $trace[$i]["function"];
        if (isset($trace[$i]["class"])) $name = $trace[$i]["class"] . "::" . $name;
        $view[] = [$name, $trace[$i - 1]["file"] ?? null, $trace[$i - 1]["line"] ?? 0];
    }
    fwrite($record, json_encode([getmypid(), $view], JSON_UNESCAPED_SLASHES) . "\n");
}

$kept = [];

// A closure has a copy of its function, which would be freed with it before its name can be read.
function keep($closure) {
    global $kept;
    return $kept[] = $closure;
}

class Ways {
    private array $ways = [];

    function __construct() {
        foreach (get_class_methods($this) as $name) if (str_starts_with($name, "by")) $this->ways[] = $name;
    }
    function step(int $depth) {
        if ($depth == 0) return place();
        $way = $this->ways[mt_rand(0, count($this->ways) - 1)];
        $this->$way($depth - 1);
        return $depth;
    }
    function byCall($depth) { $this->step($depth); }
    function byStatic($depth) { self::statically($this, $depth); }
    static function statically($ways, $depth) {
        $ways->step(
            $depth
        );
    }
    function byFunction($depth) { plain_function($this, $depth); }
    function byClosure($depth) { keep(function () use ($depth) { $this->step($depth); })(); }
    function byMap($depth) { array_map(keep(function ($each) { return $this->step($each); }), [$depth]); }
    function bySort($depth) {
        $list = [2, 1];
        usort($list, keep(function ($a, $b) use ($depth) { $this->step($depth); return $a - $b; }));
    }
    function byName($depth) { call_user_func([$this, "step"], $depth); }
    function byGenerator($depth) {
        $numbers = keep(function () use ($depth) { yield 1; $this->step($depth); yield 2; })();
        foreach ($numbers as $number);
    }
    function byDelegatedGenerator($depth) {
        $inner = keep(function () use ($depth) { yield $this->step($depth); });
        $outer = keep(function () use ($inner) { yield from $inner(); });
        foreach ($outer() as $each);
    }
    function byHandler($depth) {
        try {
            throw new Exception("thrown");
        } catch (Exception $e) {
            $this->step($depth);
        }
    }
    function byFinally($depth) {
        try {
            return;
        } finally {
            $this->step($depth);
        }
    }
    function byMagic($depth) {
        $asked = new class ($this, $depth) {
            function __construct(private $ways, private $depth) {}
            function __get($name) { return $this->ways->step($this->depth); }
        };
        $asked->anything;
    }
    function byDestructor($depth) {
        $gone = new class ($this, $depth) {
            function __construct(private $ways, private $depth) {}
            function __destruct() { $this->ways->step($this->depth); }
        };
        unset($gone);
    }
    function byIterator($depth) { iterator_apply(new ArrayIterator([1]), keep(fn() => $this->step($depth) && false)); }
    function byInclude($depth) {
        global $included;
        $ways = $this;
        include $included;
    }
}

function plain_function($ways, $depth) {
    $ways->step($depth);
}

$included = $argv[1] . ".php";
file_put_contents($included, "<?php\n\n\n\$ways->step(\$depth);\n");
mt_srand(7);
echo "ready\n";
fgets(STDIN);
$ways = new Ways();
for ($i = 0; $i < (int)$argv[2]; $i++) $ways->step($i % 12);
echo "done\n";
fgets(STDIN);
