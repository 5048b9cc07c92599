// SPDX-License-Identifier: BSD-2-Clause
// Runs methods of Java in several ways, up to a place that a tracer looks at, and writes down what
// Thread.getStackTrace() says there: [method, line] from the innermost on. argv: FILE ROUNDS. It begins once a line came
// on stdin, and ends once another one did.
import java.io.FileWriter;
import java.util.Arrays;
import java.util.Random;

public class Walkers {
  interface Step { int go(Walkers walkers, int depth); }
  interface Greedy { default int take(Walkers walkers, int depth) { return walkers.step(depth); } }
  static class Taker implements Greedy {}
  static class Made {
    final int made;
    Made(Walkers walkers, int depth) { made = walkers.step(depth); }
  }
  static class Generic<T> {
    int take(T what, Walkers walkers, int depth) { return walkers.step(depth); }
  }
  static class Narrow extends Generic<String> {
    @Override int take(String what, Walkers walkers, int depth) { return walkers.step(depth); }
  }

  final Random random = new Random(20261130);
  final FileWriter views;

  Walkers(FileWriter views) { this.views = views; }

  void place() {
    StackTraceElement[] trace = Thread.currentThread().getStackTrace();
    Thread.yield();
    StringBuilder view = new StringBuilder("[0, [");
    for (int i = 1; i < trace.length; i++) {
      view.append(i > 1 ? ", " : "").append("[\"").append(trace[i].getClassName()).append('.');
      view.append(trace[i].getMethodName()).append("\", ").append(trace[i].getLineNumber()).append(']');
    }
    try {
      views.write(view.append("]]\n").toString());
      views.flush();
    } catch (java.io.IOException error) {
      throw new RuntimeException(error);
    }
  }
  int step(int depth) {
    if (depth <= 0) {
      place();
      return 0;
    }
    switch (random.nextInt(9)) {
      case 0: return byCall(depth - 1);
      case 1: return byStatic(this, depth - 1, new int[] {1}, "text");
      case 2: return byRecursion(depth);
      case 3: return byLambda(depth - 1);
      case 4: return new Taker().take(this, depth - 1);
      case 5: return new Made(this, depth - 1).made;
      case 6: return byGeneric(new Narrow(), depth - 1);
      case 7: return bySort(depth - 1);
      default: return byLock(depth - 1);
    }
  }
  int byCall(int depth) { return step(depth); }
  static int byStatic(Walkers walkers, int depth, int[] numbers, String text) {
    return walkers.step(depth) + numbers[0];
  }
  int byRecursion(int depth) { return depth > 0 ? byRecursion(depth - 1) : step(0); }
  int byLambda(int depth) {
    Step step = (walkers, left) -> walkers.step(left);
    return step.go(this, depth);
  }
  int byGeneric(Generic<String> generic, int depth) { return generic.take("what", this, depth); }
  int bySort(int depth) {
    Integer[] two = {2, 1};
    Arrays.sort(two, (a, b) -> {
      step(depth);
      return a - b;
    });
    return two[0];
  }
  synchronized int byLock(int depth) { return step(depth); }

  static void waitForLine() throws java.io.IOException {
    for (int c = System.in.read(); c != '\n' && c != -1;) c = System.in.read();
  }
  public static void main(String[] argv) throws Exception {
    Walkers walkers = new Walkers(new FileWriter(argv[0]));
    System.out.println();
    waitForLine();
    for (int round = 0; round < Integer.parseInt(argv[1]); round++) walkers.step(2 + walkers.random.nextInt(6));
    System.out.println();
    waitForLine();
  }
}
